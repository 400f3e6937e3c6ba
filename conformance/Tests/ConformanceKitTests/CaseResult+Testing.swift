@testable import ConformanceKit

extension CaseResult {
    /// Whether the subject does not meet the requirement of the case.
    var isUnmet: Bool {
        switch outcome {
        case .fail, .warn: true
        default: false
        }
    }
}
