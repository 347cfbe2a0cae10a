"""The modules here turn answers into the text that commands print. They are pure."""
