/// What a check of a data directory has looked at.
package struct CheckSummary: Sendable, Hashable {
    package var uploads = 0
    package var unfinished = 0
    /// Published files of which there is a record.
    package var files = 0
    package var findings = 0
    /// How many of the findings are damage.
    package var damages = 0
}
