import Foundation
import SystemCalls

/// The right to run a transfer whose resume data may also be kept elsewhere. It lasts until this object is released or
/// the process ends.
final class TicketClaim: Sendable {
    private let ticket: ResumeTicket
    private let directory: FileDescriptor
    /// The ticket file, which is locked.
    private let file: FileDescriptor

    private init(_ ticket: ResumeTicket, _ directory: FileDescriptor, _ file: FileDescriptor) {
        self.ticket = ticket
        self.directory = directory
        self.file = file
    }

    /// The result of an attempt to claim a ticket.
    enum Outcome {
        case claimed(TicketClaim)
        /// The ticket file does not exist.
        case missing
        /// Data of a later generation has been used.
        case superseded
        /// Another transfer is running with the ticket.
        case busy
    }

    /// Claims the transfer of data without a ticket, and creates the ticket file if it is missing.
    /// - Returns: `nil` if another transfer is running with the data.
    static func claim(
        checkpointOf ticket: ResumeTicket, in directory: FileDescriptor
    ) throws(Errno) -> TicketClaim? {
        while true {
            let file = try directory.open(at: ticket.fileName, [.readWrite, .create, .noFollow, .nonBlocking])
            guard try file.lockForTransfer() else { return nil }
            // The transfer that held the lock may have ended, and removed the name.
            guard directory.isName(FilePath(ticket.fileName), of: file) else { continue }
            // The file is new. The run that made the checkpoint had used the resume data of this generation, so only
            // later data is valid.
            if try file.status().size == 0 { try? write(ticket.generation + 1, to: file) }
            return TicketClaim(ticket, directory, file)
        }
    }

    /// Claims the transfer that data with a ticket belongs to. Data of earlier generations is superseded.
    static func claim(_ ticket: ResumeTicket, in directory: FileDescriptor) throws(Errno) -> Outcome {
        let file: FileDescriptor
        do throws(Errno) {
            file = try directory.open(at: ticket.fileName, [.readWrite, .noFollow, .nonBlocking])
        } catch {
            if error == .noSuchFile { return .missing }
            throw error
        }
        guard try file.lockForTransfer() else { return .busy }
        // The name may have been removed before the lock was acquired.
        guard directory.isName(FilePath(ticket.fileName), of: file) else { return .missing }
        let claim = TicketClaim(ticket, directory, file)
        let lowest = generation(in: file)
        guard ticket.generation >= lowest else { return .superseded }
        // The resume data of this ticket was saved, because it is used now. So earlier resume data is not needed any
        // more. If the disk is full, the earlier data stays valid.
        if ticket.generation > lowest { try? write(ticket.generation, to: file) }
        return .claimed(claim)
    }

    /// Removes the ticket file, because there is nothing left to resume. No data of the transfer is valid any more.
    func remove() { try? directory.unlink(at: ticket.fileName) }

    /// The lowest valid generation; 0 if the file contains none.
    static func generation(in file: FileDescriptor) -> Int {
        var bytes = [UInt8](repeating: 0, count: 20)
        let count = bytes.withUnsafeMutableBytes { buffer in (try? file.read(into: buffer, at: 0)) ?? 0 }
        return Int(String(decoding: bytes[..<count], as: UTF8.self)) ?? 0
    }

    static func write(_ generation: Int, to file: FileDescriptor) throws(Errno) {
        // The generation only grows, so the new number always overwrites all digits of the old one.
        try file.write(Array(String(generation).utf8), at: 0)
    }
}

/// Prevents two transfers from using resume data at the same time, and any transfer from using superseded data. A
/// ticket is a file in the storage directory, one for each transfer through all its resumptions.
///
/// A transfer locks the file from its resumption, a new one from its first checkpoint, until it ends. The content is
/// the lowest generation that is still valid, as a decimal number; generations below it were superseded by one that has
/// been used. The file is removed when there is nothing left to resume. If the process is killed just before it
/// passes the first checkpoint to the caller, the file is left.
struct ResumeTicket: Sendable, Hashable, Codable {
    /// Identifies the transfer through all its resumptions.
    var id: UUID
    /// Counts the resume data that was issued for the transfer.
    var generation: Int

    var fileName: String { "\(id.uuidString).ticket" }
}

extension FileDescriptor {
    /// Locks a file that only one transfer at a time may use. On a file system without locks every attempt succeeds.
    /// - Returns: false if another transfer has locked the file.
    func lockForTransfer() throws(Errno) -> Bool {
        do throws(Errno) {
            return try tryLock()
        } catch {
            if error == .notSupported { return true }
            throw error
        }
    }
}
