import Glibc
import SystemCalls
import Testing

@Suite struct ThreadStackTests {
    /// Whether the page with this address is in memory.
    private static func isResident(_ address: UInt) -> Bool {
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        var states: [UInt8] = [0]
        return mincore(UnsafeMutableRawPointer(bitPattern: address & ~(page - 1)), Int(page), &states) == 0
            && states[0] & 1 == 1
    }

    /// Uses about a thousand bytes of the stack in each call, and returns the lowest address.
    @inline(never)
    private static func recurse(_ depth: Int) -> UInt {
        withUnsafeTemporaryAllocation(byteCount: 1000, alignment: 16) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: UInt8(depth))
            let lowest = depth == 0 ? UInt.max : recurse(depth - 1)
            return min(lowest, UInt(bitPattern: bytes.baseAddress), bytes[0] == UInt8(depth) ? .max : 0)
        }
    }

    @Test("the memory of deep calls is given back, and the frames of the current calls keep their content")
    func release() throws {
        let found = Monitor<(isUsed: Bool, isKept: Bool, content: Bool)?>(nil)
        let thread = try WorkerThread(name: "stack") {
            withUnsafeTemporaryAllocation(byteCount: 1000, alignment: 16) { bytes in
                bytes.initializeMemory(as: UInt8.self, repeating: 7)
                let deepest = Self.recurse(100)
                let isUsed = Self.isResident(deepest)
                ThreadStack.releaseUnused()
                let isKept = Self.isResident(deepest)
                let content = bytes.allSatisfy { $0 == 7 } && Self.recurse(100) == deepest
                found.withLock { $0 = (isUsed, isKept, content) }
            }
        }
        thread.join()
        let result = try #require(found.withLock { $0 })
        #expect(result.isUsed && !result.isKept && result.content, "\(result)")
    }
}
