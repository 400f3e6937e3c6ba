@testable import ConformanceKit

extension CaseResult {
    /// Whether the subject does not meet what was asked.
    var isUnmet: Bool {
        switch outcome {
        case .fail, .warn: true
        default: false
        }
    }
}
