"""How a call is made: one module per kind of tool. An adapter never imports another."""
