import Foundation
import ResumableTransfer
import Testing

@testable import ResumableURLSession

@Suite("The context of a task, which resume data does not contain")
struct TaskContextTests {
    /// Resume data of downloads that never ran.
    private func samples(_ count: Int) throws -> [ResumeData] {
        try (0..<count).map { number in
            let text = """
                {"content":{"download":{"bootID":"b","inode":1,"partialName":"\(UUID().uuidString).part","received":0,"synchronized":0}},\
                "createdAt":\(number),"generation":0,"hasTicket":false,"id":"\(UUID().uuidString)",\
                "request":{"fields":[],"method":"GET","uri":"http://example.org/"}}
                """
            return try ResumeData(Data("RSMD".utf8) + [0, 1] + Data(text.utf8))
        }
    }

    @Test("a context is kept until its resume data is used, and the oldest contexts are removed first")
    func bounded() throws {
        let contexts = TaskContexts(limit: 3)
        let data = try samples(4)
        for (number, data) in data.enumerated() {
            contexts.keep(TaskContext(request: TransferRequest("http://example.org/\(number)")), for: data)
        }
        #expect(contexts.context(of: data[0]) == nil)
        #expect(contexts.context(of: data[3])?.request.uri == "http://example.org/3")
        contexts.forget(data[3])
        #expect(contexts.context(of: data[3]) == nil)
        contexts.forget(data[3])
        contexts.keep(TaskContext(request: TransferRequest("http://example.org/")), for: data[0])
        #expect(contexts.context(of: data[1]) != nil && contexts.context(of: data[0]) != nil)
    }
}
