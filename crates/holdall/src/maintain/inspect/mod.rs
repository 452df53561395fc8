//! Text dumps of what lies in a store, for those who look for a fault.
