/// How many uploads a change has removed, by their phase.
package struct RemovedUploads: Sendable, Hashable {
    package var unfinished = 0
    package var complete = 0
    package var invalid = 0

    package init() {}

    var finished: Int { complete + invalid }

    mutating func add(_ phase: UploadRecord.Phase) {
        switch phase {
        case .receiving, .processing: unfinished += 1
        case .complete: complete += 1
        case .invalid: invalid += 1
        }
    }
}
