import SystemCalls
import Testing

@testable import UploadStorage

@Suite("Errors of the store")
struct StoreErrorTests {
    static let errors: [StoreError] = [
        .notFound, .superseded, .gone(reason: "it has expired"), .completed, .lengthExceeded(length: 10),
        .invalidState("nothing is staged"), .processing, .tooManyUploads(limit: 3), .quotaExceeded(limit: 10),
        .insufficientSpace(nil), .io(.inputOutput, during: "read the catalog"), .unavailable("no connection to it"),
        .heldElsewhere, .stateLost, .preconditionFailed, .targetIsDirectory, .targetIsSpecial, .parentIsFile,
        .noFreeName, .inUse, .cannotStartThread(.timedOut), .newerSchema(7),
        .foreignData("onward.sqlite is no database"),
        .damaged("a row cannot be read"), .unusableRoot("it is not a directory"),
        .unusableHandover("handover=/x: it is not a directory"),
    ]

    @Test("the description of each error is a sentence, with the values and without the code", arguments: errors)
    func description(_ error: StoreError) {
        let text = "\(error)"
        #expect(text.split(separator: " ").count >= 3 && !text.contains(error.code), "\(text)")
        let values: [String] =
            switch error {
            case .gone(let reason), .invalidState(let reason), .unavailable(let reason), .foreignData(let reason),
                .damaged(let reason), .unusableRoot(let reason), .unusableHandover(let reason):
                [reason]
            case .lengthExceeded(let number), .quotaExceeded(let number): ["\(number)"]
            case .tooManyUploads(let number), .newerSchema(let number): ["\(number)"]
            case .io(let error, let operation): ["\(error)", operation]
            case .cannotStartThread(let error): ["\(error)"]
            default: []
            }
        for value in values { #expect(text.contains(value)) }
    }
}
