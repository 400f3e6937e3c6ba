/// The completions that a shell can offer for a value.
package enum Completion: Sendable, Hashable {
    case nothing
    case files
    case directories
    case words([String])
    /// The lines of output of a command for the POSIX shell.
    case lines(String)

    /// Chooses the completion by the placeholder of the value.
    init(placeholder: String) {
        switch placeholder {
        case "FILE", "F": self = .files
        case "DIR": self = .directories
        default: self = .nothing
        }
    }
}
