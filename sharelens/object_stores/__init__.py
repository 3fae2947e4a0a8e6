"""Object stores: addresses, options, clients, and errors in one line. Lakes and log copies lie in them."""
