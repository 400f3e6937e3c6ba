/// What a shell can offer for a value.
package enum Completion: Sendable, Hashable {
    case nothing
    case files
    case directories
    case words([String])
    /// The lines that a command of the POSIX shell writes.
    case lines(String)

    /// As the placeholder of a value says it.
    init(placeholder: String) {
        switch placeholder {
        case "FILE", "F": self = .files
        case "DIR": self = .directories
        default: self = .nothing
        }
    }
}
