import ClusterStorage
import Testing
import UploadStorage

@Suite struct NodeSessionTests {
    private let id = UploadID()

    private func session(at time: Int64 = 0) -> NodeSession {
        var session = NodeSession()
        session.opened(4, sentAt: time)
        session.acquired(id, NodeSession.Hold(fence: 3, blob: "b", principal: "p"), by: 4)
        return session
    }

    private let second: Int64 = 1_000_000_000

    @Test("a hold is relied on until a margin before the end of the session, counted from the sending of the renewal")
    func end() {
        var session = session(at: 10 * second)
        #expect(session.hold(id, at: 23 * second - 1)?.fence == 3)
        #expect(session.hold(id, at: 23 * second) == nil && session.lastHold(id) != nil)
        session.renewed(sentAt: 15 * second)
        #expect(session.isAlive(at: 28 * second - 1) && !session.isAlive(at: 28 * second))
        // The response to an earlier renewal arrives late.
        session.renewed(sentAt: 12 * second)
        #expect(session.isAlive(at: 28 * second - 1))
        #expect(session.ended() == [id] && !session.isAlive(at: 0) && session.lastHold(id) == nil)
        #expect(session.number == nil)
    }

    @Test("a release without a request is made later, unless the upload is used again")
    func idle() {
        var session = session()
        #expect(session.released(id, fence: 2, at: 0) == nil && session.released(id, fence: 3, at: 0) == nil)
        #expect(session.idleReleases(at: second - 1).isEmpty)
        session.acquired(id, NodeSession.Hold(fence: 3, blob: "b", principal: "p"), by: 4)
        #expect(session.idleReleases(at: .max).isEmpty)
        #expect(session.released(id, fence: 3, at: second) == nil)
        let releases = session.idleReleases(at: 2 * second)
        #expect(releases == [NodeSession.Release(id: id, fence: 3, askers: [])] && session.isUnknown(id))
    }

    @Test("a request ends the use of an upload, and the release then notifies all that have asked")
    func requests() {
        var session = session()
        #expect(session.requested(id, by: 7) == .endUse && session.requested(id, by: 8) == .endUse)
        #expect(session.released(id, fence: 3, at: 0) == NodeSession.Release(id: id, fence: 3, askers: [7, 8]))
        #expect(session.requested(id, by: 7) == .release(NodeSession.Release(id: id, fence: nil, askers: [7])))
        session.beginAcquiring(id)
        #expect(session.requested(id, by: 7) == .none && !session.isUnknown(id))
        session.endAcquiring(id)
        #expect(session.isUnknown(id))
    }

    @Test("a response for an earlier session or with an earlier fence changes nothing")
    func lateResponses() {
        var session = session()
        session.acquired(id, NodeSession.Hold(fence: 2, blob: "b", principal: "p"), by: 4)
        #expect(session.lastHold(id)?.fence == 3)
        _ = session.ended()
        session.opened(5, sentAt: 0)
        session.acquired(id, NodeSession.Hold(fence: 9, blob: "b", principal: "p"), by: 4)
        #expect(session.lastHold(id) == nil)
    }

    @Test("an unknown outcome belongs to the session of its batch, also if the session has changed since")
    func settlementOfEarlierSession() {
        var session = session()
        _ = session.ended()
        session.opened(5, sentAt: 0)
        // The batch was sent in the session 4.
        session.outcomeBecameUnknown(in: 4)
        session.settled(5, nextBatch: 1)
        #expect(session.unsettled == [4] && session.batch == 1)
        session.settled(4, nextBatch: 7)
        #expect(session.unsettled == [] && session.batch == 1)
    }

    @Test("after a commit with an unknown outcome, batches need the next number")
    func settlement() {
        var session = session()
        session.outcomeBecameUnknown(in: 4)
        session.settled(3, nextBatch: 9)
        #expect(session.unsettled == [4] && session.batch == 0)
        session.settled(4, nextBatch: 1)
        #expect(session.unsettled == [] && session.batch == 1)
    }
}
