"""A class of students on one server: `python -m benchmarks.load`.

A real Streamlit server in one process, real websocket clients that speak its protocol in another. Nothing leaves
127.0.0.1, and every run ends by itself. The fact people get wrong is to press only once the last answer has come:
then a slow server is asked less. Here a press is due when it is due, and its wait counts from there.
"""
