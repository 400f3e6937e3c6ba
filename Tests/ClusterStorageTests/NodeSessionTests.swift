import Testing
import UploadStorage

@testable import ClusterStorage

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

    @Test("an upload that its target processes is kept until the next session, and then as long as that has adopted it")
    func processing() {
        var session = session()
        let other = UploadID()
        session.acquired(other, NodeSession.Hold(fence: 1, blob: "c", principal: "p"), by: 4)
        session.set(isProcessing: true, id, fence: 2)
        #expect(session.hold(id, at: 14 * second) == nil)
        session.set(isProcessing: true, id, fence: 3)
        #expect(session.hold(id, at: 14 * second)?.fence == 3 && session.hold(other, at: 14 * second) == nil)
        #expect(session.ended() == [other] && session.number == nil && session.fences == [id: 3])
        #expect(session.hold(id, at: 90 * second)?.fence == 3 && session.hold(other, at: 0) == nil)
        #expect(session.opened(5, sentAt: 90 * second, adopting: [id, other]) == [])
        #expect(session.lastHold(id)?.fence == 3 && session.lastHold(other) == nil)
        // A change that session 4 has sent, and that the database has received after the adoption, can be repeated.
        #expect(session.canRepeat(id, of: 4) && !session.canRepeat(id, of: 5) && !session.canRepeat(other, of: 4))
        // The upload is kept again.
        #expect(session.ended() == [] && session.opened(6, sentAt: 120 * second) == [id])
        #expect(session.hold(id, at: 120 * second) == nil && session.fences == [:])
        // An upload that its target does not process any more is not kept.
        session.acquired(id, NodeSession.Hold(fence: 5, blob: "b", principal: "p"), by: 6)
        session.set(isProcessing: true, id, fence: 5)
        session.set(isProcessing: false, id, fence: 5)
        #expect(session.ended() == [id])
    }

    @Test("the end of an earlier use does not release the upload while a later use holds it")
    func release() {
        var session = session()
        #expect(session.released(id, fence: 2) == nil)
        session.acquired(id, NodeSession.Hold(fence: 4, blob: "b", principal: "p"), by: 4)
        #expect(session.released(id, fence: 3) == nil && session.lastHold(id)?.fence == 4)
        #expect(session.released(id, fence: 4) == NodeSession.Release(id: id, fence: 4, requesters: []))
        #expect(session.released(id, fence: 4) == nil && session.isUnknown(id))
    }

    @Test("a request ends the use of an upload, and the release then notifies all sessions that have requested it")
    func requests() {
        var session = session()
        #expect(session.requested(id, by: 7) == .endUse && session.requested(id, by: 8) == .endUse)
        #expect(session.released(id, fence: 3) == NodeSession.Release(id: id, fence: 3, requesters: [7, 8]))
        #expect(session.requested(id, by: 7) == .release(NodeSession.Release(id: id, fence: nil, requesters: [7])))
        session.beginAcquiring(id)
        #expect(session.requested(id, by: 7) == .none && !session.isUnknown(id))
        // A later use of this session also ends for the sessions that have requested the upload during an earlier use.
        session.acquired(id, NodeSession.Hold(fence: 5, blob: "b", principal: "p"), by: 4)
        session.endAcquiring(id)
        #expect(session.requested(id, by: 7) == .endUse)
        session.acquired(id, NodeSession.Hold(fence: 6, blob: "b", principal: "p"), by: 4)
        #expect(session.released(id, fence: 6)?.requesters == [7])
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

    @Test("notifications are missing before the first one, and after ten that have not arrived")
    func notifications() {
        var probe = NotificationProbe()
        #expect(!probe.isArriving && !probe.hasArrived)
        for number in 1..<10 { #expect(probe.sent(number) == nil) }
        let problem = probe.sent(probe.next)
        #expect(problem?.isProblem == true && problem?.text.contains("--catalog-direct") == true)
        #expect(!probe.isArriving && probe.sent(11) == nil)
        // The problem is reported once, and its end is reported once.
        #expect(probe.received(11)?.isProblem == false && probe.received(11) == nil)
        #expect(probe.isArriving && probe.hasArrived)
        for number in 12...20 { #expect(probe.sent(number) == nil && probe.isArriving && !probe.hasArrived) }
        #expect(probe.sent(21)?.isProblem == true && !probe.isArriving)
    }

    @Test("an unknown outcome belongs to the session of its batch, even if the session has changed since")
    func resolutionOfEarlierSession() {
        var session = session()
        _ = session.ended()
        session.opened(5, sentAt: 0)
        // The batch was sent in the session 4.
        session.outcomeBecameUnknown(in: 4)
        session.resolved(5, nextBatch: 1)
        #expect(session.unresolved == [4] && session.batch == 1)
        session.resolved(4, nextBatch: 7)
        #expect(session.unresolved == [] && session.batch == 1)
    }

    @Test("after a commit with an unknown outcome, batches need the next number")
    func resolution() {
        var session = session()
        session.outcomeBecameUnknown(in: 4)
        session.resolved(3, nextBatch: 9)
        #expect(session.unresolved == [4] && session.batch == 0)
        session.resolved(4, nextBatch: 1)
        #expect(session.unresolved == [] && session.batch == 1)
    }
}
