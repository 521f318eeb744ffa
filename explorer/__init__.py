"""The Streamlit side of Loupe: pages, and the bytes their components get. Nothing here sees a model or a tensor."""
