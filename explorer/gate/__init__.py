"""What may come in from outside, checked before Streamlit sees it: who asks, for what, how much and how often."""
