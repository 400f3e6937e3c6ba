import ResumableUpload
import Testing

@testable import HTTPTransport
@testable import ResumableTransfer

@Suite("Traits of servers that earlier uploads observed")
struct ServerTraitsTests {
    private func uri(_ text: String) throws -> RequestURI { try #require(RequestURI(text)) }

    @Test(
        "After a creation without a 104, small content to the same origin is sent without a wait, until a 104 arrives")
    func silence() throws {
        let traits = ServerTraits()
        let (here, beside, elsewhere) = (try uri("http://h/a"), try uri("http://h:80/b?x"), try uri("https://h/a"))
        #expect(traits.shouldAwaitInterim(here, length: 1))
        traits.noteCreation(here, isAnnounced: false)
        #expect(!traits.shouldAwaitInterim(here, length: 1) && !traits.shouldAwaitInterim(beside, length: 4 << 20))
        #expect(traits.shouldAwaitInterim(elsewhere, length: 1))
        #expect(traits.shouldAwaitInterim(here, length: (4 << 20) + 1) && traits.shouldAwaitInterim(here, length: nil))
        traits.noteCreation(beside, isAnnounced: true)
        #expect(traits.shouldAwaitInterim(here, length: 1))
    }

    @Test("The traits of a target are stored for that target only")
    func targets() throws {
        let traits = ServerTraits()
        let (here, beside) = (try uri("http://h/a"), try uri("http://h/b"))
        #expect(traits.isResumptionSupported(here) == nil && traits.maxAppend(here) == nil)
        traits.noteSupport(here, true)
        traits.noteLimits(here, UploadLimits(maxAppendSize: 5))
        #expect(traits.isResumptionSupported(here) == true && traits.maxAppend(here) == 5)
        #expect(traits.isResumptionSupported(beside) == nil && traits.maxAppend(beside) == nil)
        traits.noteLimits(here, UploadLimits())
        #expect(traits.maxAppend(here) == nil)
    }

    @Test("The number of stored targets is bounded")
    func bound() throws {
        let traits = ServerTraits()
        for number in 0..<5000 { traits.noteSupport(try uri("http://h/\(number)"), false) }
        #expect(traits.isResumptionSupported(try uri("http://h/4999")) == false)
        #expect(traits.isResumptionSupported(try uri("http://h/0")) == nil)
    }
}
