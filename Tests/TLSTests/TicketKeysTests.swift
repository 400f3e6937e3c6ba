import Testing

@testable import TLS

@Suite("Ticket keys")
struct TicketKeysTests {
    @Test("Ticket keys are kept for their lifetime and then replaced")
    func rotation() throws {
        let keys = try TicketKeys(at: 1000)
        let first = try keys.key(at: 1000)
        #expect(try keys.key(at: 999 + TicketKeys.lifetime) === first)
        let second = try keys.key(at: 1000 + TicketKeys.lifetime)
        #expect(second !== first)
        #expect(try keys.key(at: 999 + 2 * TicketKeys.lifetime) === second)
        #expect(try keys.key(at: 1000 + 9 * TicketKeys.lifetime) !== second)
    }
}
