import SystemCalls

/// A client that is run by a shell command.
struct CommandCandidate: Candidate {
    let upload: String?
    let download: String?

    func perform(_ task: CandidateTask) throws -> CandidateEnding {
        guard let template = task.direction == .upload ? upload : download else {
            throw RunFailure(task.direction == .upload ? "--command is missing" : "--get-command is missing")
        }
        let command =
            template.replacing("{file}", with: Self.quoted(task.file)).replacing("{url}", with: Self.quoted(task.url))
            .replacing("{state}", with: Self.quoted(task.state))
        let group = try ProcessGroup(shell: command, output: task.output)
        while !task.deadline.isOver {
            if let ending = group.currentEnding {
                // The process group kills remaining processes when it is released.
                return switch ending {
                case .exited(let status): .exited(status)
                case .signaled(let signal): .signaled(signal)
                }
            }
            if task.shouldKill() {
                group.kill()
                return .killed
            }
            Deadline.pause(.milliseconds(5))
        }
        group.kill()
        return .timedOut
    }

    private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
