import FoundationNetworking
import Testing

@testable import ResumableURLSession

@Suite("The states of a task")
struct TaskMachineTests {
    @Test("a task begins suspended, runs after it is resumed, and is complete after its end was reported")
    func ordinary() {
        var machine = TaskMachine()
        #expect(machine.state == .suspended)
        #expect(machine.resume() == .start)
        #expect(machine.state == .running)
        #expect(machine.resume() == .nothing)
        #expect(machine.commandForNewTransfer == .nothing)
        #expect(machine.runEnded(isPaused: false) == .end)
        #expect(machine.isOver && machine.state == .running)
        machine.didNotify()
        #expect(machine.state == .completed)
        #expect(machine.resume() == .nothing && machine.suspend() == .nothing && machine.cancel() == .nothing)
        #expect(machine.cancelKeepingData() == .nothing && machine.abort() == .nothing)
    }

    @Test("a suspended task runs after it was resumed as often as it was suspended")
    func nesting() {
        var machine = TaskMachine()
        #expect(machine.suspend() == .nothing)
        #expect(machine.resume() == .nothing)
        #expect(machine.state == .suspended)
        #expect(machine.resume() == .start)
        #expect(machine.suspend() == .pause)
        #expect(machine.suspend() == .nothing)
        #expect(machine.state == .suspended)
        #expect(machine.runEnded(isPaused: true) == .nothing)
        #expect(machine.resume() == .nothing)
        #expect(machine.resume() == .start)
    }

    @Test("a task that is resumed while its run is stopping starts again after the run has stopped")
    func hasty() {
        var machine = TaskMachine()
        _ = machine.resume()
        #expect(machine.suspend() == .pause)
        #expect(machine.commandForNewTransfer == .pause)
        #expect(machine.resume() == .nothing)
        #expect(machine.state == .running)
        #expect(machine.runEnded(isPaused: true) == .start)
    }

    @Test("a run that ends without a pause while the task is suspended ends the task")
    func late() {
        var machine = TaskMachine()
        _ = machine.resume()
        _ = machine.suspend()
        #expect(machine.runEnded(isPaused: false) == .end)
    }

    @Test("a run that the task did not pause ends the task")
    func foreign() {
        var machine = TaskMachine()
        _ = machine.resume()
        #expect(machine.runEnded(isPaused: true) == .end)
    }

    @Test("canceling ends a task immediately in every state", arguments: [0, 1, 2])
    func cancelling(state: Int) {
        var machine = TaskMachine()
        if state > 0 { _ = machine.resume() }
        if state > 1 { _ = machine.suspend() }
        #expect(machine.cancel() == (state == 0 ? .end : .endNow))
        #expect(machine.state == .canceling && machine.isOver)
        #expect(machine.commandForNewTransfer == .endNow)
        #expect(machine.runEnded(isPaused: true) == .nothing)
        #expect(machine.cancel() == .nothing)
        #expect(machine.cancelKeepingData() == .nothing)
    }

    @Test("canceling with resume data waits for the run, and a later plain cancellation does not discard the data")
    func keeping() {
        var machine = TaskMachine()
        _ = machine.resume()
        #expect(machine.cancelKeepingData() == .pause)
        #expect(machine.state == .canceling && !machine.isOver)
        #expect(machine.cancel() == .nothing && machine.suspend() == .nothing && machine.resume() == .nothing)
        #expect(machine.runEnded(isPaused: true) == .end)
        #expect(machine.earlyEnd == .cancelKeepingData)
        var idle = TaskMachine()
        #expect(idle.cancelKeepingData() == .end)
    }

    @Test("an aborted task stops its run, and the task ends even if it is canceled before the run has stopped")
    func aborting() {
        var machine = TaskMachine()
        _ = machine.resume()
        #expect(machine.abort() == .pause)
        #expect(machine.state == .running)
        var canceled = machine
        #expect(machine.runEnded(isPaused: true) == .end)
        #expect(canceled.cancelKeepingData() == .nothing)
        #expect(canceled.runEnded(isPaused: true) == .end)
        var idle = TaskMachine()
        #expect(idle.abort() == .end)
    }
}
