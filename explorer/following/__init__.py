"""Leading a class: one tab's run on everybody's screen."""
