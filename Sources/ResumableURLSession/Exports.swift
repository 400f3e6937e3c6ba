// FoundationNetworking is exported, and the protocols of this module replace those of the same names in it. In a file that
// imports FoundationNetworking itself both are visible, and their names are ambiguous.
@_exported import FoundationNetworking
// A session can be created with the settings of transfers. They are exported, so that a program that uses sessions needs no
// other import.
@_exported import ResumableTransfer
