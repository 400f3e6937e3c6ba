extension TerminalReport {
    /// Everything that was not met, with what went over the wire, and the sum.
    package func closing(_ report: ClientReport, strict: Bool) -> String {
        var text = ""
        for result in report.results { text += details(of: result) }
        text += "\n"
        for command in [report.uploadCommand, report.downloadCommand].compactMap({ $0 }) {
            text += paint(command, .bold) + "\n"
        }
        let words = Outcome.words.compactMap { word -> String? in
            let count = report.count(word)
            return count == 0 ? nil : "\(count) \(word)"
        }
        let time = "\(report.milliseconds / 1000).\(report.milliseconds % 1000 / 100) s"
        text += "\(report.results.count) questions in \(time), seed \(report.seed): \(words.joined(separator: ", "))\n"
        if let failure = report.failure { text += paint("Could not judge: \(failure)", .red) + "\n" }
        switch report.exitStatus(strict: strict) {
        case 0: text += paint(report.count("warn") == 0 ? "Conforms." : "Conforms, with warnings.", .green) + "\n"
        case 1: text += paint("Does not conform.", .red) + "\n"
        default: break
        }
        return text
    }
}
