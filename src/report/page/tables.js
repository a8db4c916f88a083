// Sorts and filters tables.
