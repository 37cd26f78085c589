"""People: accounts, rights, applications, answers to custom fields."""
