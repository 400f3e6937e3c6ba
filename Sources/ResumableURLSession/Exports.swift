// A session can be created with the settings of transfers. They are exported, so that a program that uses sessions needs no
// other import.
@_exported import ResumableTransfer
