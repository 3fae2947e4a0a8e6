"""`python -m sharelens`."""

from sharelens.cli.entry import command

if __name__ == "__main__":
    command()
