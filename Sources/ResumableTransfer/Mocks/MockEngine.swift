import HTTPTransport
import SystemCalls

/// Performs exchanges with a ``MockTransport``.
final class MockEngine: Transport {
    private struct State {
        var count = 0
        var isShutDown = false
        var running: [ObjectIdentifier: TransportExchange] = [:]
    }

    private let transport: MockTransport
    private let state = Monitor(State())

    init(_ transport: MockTransport) {
        self.transport = transport
    }

    func start(_ request: TransportRequest) -> TransportExchange {
        let mock = MockExchange(request)
        let exchange = TransportExchange(mock)
        let number = state.withLock { state -> Int? in
            if state.isShutDown { return nil }
            state.count += 1
            state.running[ObjectIdentifier(exchange)] = exchange
            return state.count
        }
        guard let number else {
            exchange.end(.canceled)
            return exchange
        }
        mock.run(exchange, number, transport) { [weak self] in
            _ = self?.state.withLock { $0.running.removeValue(forKey: ObjectIdentifier(exchange)) }
        }
        return exchange
    }

    func shutDown() {
        let running = state.withLock { state in
            state.isShutDown = true
            return Array(state.running.values)
        }
        for exchange in running { exchange.cancel() }
    }
}
