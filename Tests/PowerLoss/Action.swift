/// One step of a client or of the server. An upload is named by the number of its creation, modulo the count of
/// uploads, so that a script stays valid when actions are removed from it.
enum Action {
    case create(size: Int, name: Int, declaresLength: Bool, expires: Bool)
    case append(Int, count: Int)
    case acknowledge(Int)
    case startAcknowledging(Int)
    case takeOver(Int)
    case release(Int)
    case stage(Int, commits: Bool)
    /// Sends the remaining content and publishes the file.
    case publish(Int)
    /// Creates three uploads that are recorded late, with `size` bytes and more, and publishes them at the same time.
    case publishTogether(size: Int)
    /// Sends the remaining content and runs a target that must not run twice.
    case process(Int)
    /// Sends the final response before the content is complete.
    case refuse(Int)
    case invalidate(Int)
    case cancel(Int)
    case removeFile(name: Int)
    case sweep(seconds: Int)
    /// Closes the store and opens it again.
    case restart

    static func random(using generator: inout some RandomNumberGenerator) -> Action {
        let upload = Int.random(in: 0..<8, using: &generator)
        switch Int.random(in: 0..<44, using: &generator) {
        case 0..<7:
            let size: Int =
                switch Int.random(in: 0..<8, using: &generator) {
                case 0: 0
                case 1: Int.random(in: 1...60_000, using: &generator)
                default: Int.random(in: 1...6_000, using: &generator)
                }
            return .create(
                size: size, name: Int.random(in: 0..<4, using: &generator),
                declaresLength: Bool.random(using: &generator),
                expires: Int.random(in: 0..<4, using: &generator) == 0)
        case 7..<15: return .append(upload, count: Int.random(in: 0...3000, using: &generator))
        case 15..<19: return .acknowledge(upload)
        case 19, 20: return .startAcknowledging(upload)
        case 21, 22: return .takeOver(upload)
        case 23, 24: return .release(upload)
        case 25, 26: return .stage(upload, commits: Bool.random(using: &generator))
        case 27..<32: return .publish(upload)
        case 32: return .process(upload)
        case 33: return .refuse(upload)
        case 34: return .invalidate(upload)
        case 35: return .cancel(upload)
        case 36: return .removeFile(name: Int.random(in: 0..<4, using: &generator))
        case 40..<44: return .publishTogether(size: Int.random(in: 0...3000, using: &generator))
        case 37, 38: return .sweep(seconds: Int.random(in: 0...60, using: &generator))
        default: return .restart
        }
    }
}
