// Shows the command of a figure and copies it.
