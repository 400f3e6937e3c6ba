import Foundation
import Glibc
import TestSupport

/// The entry points of libFuzzer. `ONWARD_FUZZ_TARGET` is the name of the target. With `ONWARD_FUZZ_SEEDS` the program writes
/// the seeds to that directory and the dictionary next to it, and runs nothing. Without a target it prints all names.
private let chosen: FuzzTarget? = {
    let name = ProcessInfo.processInfo.environment["ONWARD_FUZZ_TARGET"] ?? ""
    return FuzzTarget.all.first { $0.name == name }
}()

/// libFuzzer calls this function once at the start.
@_cdecl("LLVMFuzzerInitialize")
public func fuzzerInitialize(
    _ count: UnsafeMutablePointer<CInt>?,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?
) -> CInt {
    guard let chosen else {
        for target in FuzzTarget.all { print(target.name, target.maxLength) }
        exit(0)
    }
    guard let directory = ProcessInfo.processInfo.environment["ONWARD_FUZZ_SEEDS"] else { return 0 }
    do {
        var generator = SeededGenerator(seed: 1)
        for (index, seed) in chosen.seeds(&generator).enumerated() {
            try Data(seed).write(to: URL(filePath: "\(directory)/seed-\(index)"))
        }
        let words = chosen.dictionary.map { word in
            "\"" + word.utf8.map { "\\x" + String(256 + Int($0), radix: 16).dropFirst() }.joined() + "\"\n"
        }
        try Data(words.joined().utf8).write(to: URL(filePath: "\(directory).dictionary"))
    } catch {
        print("the seeds cannot be written: \(error)")
        exit(1)
    }
    exit(0)
}

/// libFuzzer calls this function with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzerTestOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let chosen else { return -1 }
    do throws(Violation) {
        try chosen.check(UnsafeRawBufferPointer(start: bytes, count: count))
    } catch {
        // libFuzzer keeps the input of a process that aborts.
        FileHandle.standardError.write(Data("\(chosen): \(error)\n".utf8))
        abort()
    }
    return 0
}
