"""Python wrappers of the browser components; their .js and .css are in assets/step_page."""
