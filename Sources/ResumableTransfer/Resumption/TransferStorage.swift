import Foundation
import Glibc
import SystemCalls

/// The directory for tickets and for partial files without a destination.
struct TransferStorage: Sendable {
    let path: String

    /// Opens the directory, and makes it before if need be.
    ///
    /// - Throws: `storageUnusable` where it cannot be made, is no directory, belongs to somebody else, or others may
    ///   write in it.
    func open() throws(TransferError) -> FileDescriptor {
        do throws(Errno) {
            try makeDirectories()
            let directory = try FileDescriptor.open(path, [.readOnly, .directory, .noFollow])
            let status = try directory.status()
            guard status.owner == geteuid(), status.permissions & 0o022 == 0 else {
                throw .notPermitted
            }
            return directory
        } catch {
            throw TransferError(
                .storageUnusable, "The directory \(path) for transfers cannot be used.", underlying: "\(error)")
        }
    }

    private func makeDirectories() throws(Errno) {
        guard path.hasPrefix("/") else { throw .invalidArgument }
        var missing: [Substring] = []
        var rest = path[...]
        while rest.count > 1 {
            do throws(Errno) {
                try FileDescriptor.makeDirectory(String(rest))
                break
            } catch {
                if error == .fileExists { break }
                guard error == .noSuchFile, let slash = rest.lastIndex(of: "/") else { throw error }
                missing.append(rest)
                rest = rest[..<slash]
            }
        }
        for directory in missing.reversed() {
            do throws(Errno) {
                try FileDescriptor.makeDirectory(String(directory))
            } catch {
                if error != .fileExists { throw error }
            }
        }
    }

    // MARK: Tickets

    /// Makes the file that lets resume data be used once, under the first generation from `generation` on that is
    /// free; `nil` where that cannot be done.
    ///
    /// Resume data without a ticket is worth more than none, so that a full disk does not lose a transfer.
    func issueTicket(for id: UUID, generation: Int) -> ResumeTicket? {
        guard let directory = try? open() else { return nil }
        // One may be taken: data without a ticket can be used several times, one after the other.
        for generation in generation..<generation + 1000 {
            let ticket = ResumeTicket(id: id, generation: generation)
            do throws(Errno) {
                _ = try directory.open(at: ticket.fileName, [.writeOnly, .create, .exclusive, .noFollow])
                return ticket
            } catch {
                if error != .fileExists { return nil }
            }
        }
        return nil
    }

    /// Finds out whether `data` has been used, without using it.
    /// - Throws: `resumeDataUsed`, or `storageUnusable`.
    func examine(_ data: ResumeData) throws(TransferError) {
        guard let ticket = data.record.ticket else { return }
        let directory = try open()
        do throws(Errno) {
            _ = try directory.status(at: ticket.fileName)
        } catch {
            throw refusal(error)
        }
    }

    /// Uses up the ticket of `data`. Of all who try, in whatever process, one succeeds.
    /// - Throws: `resumeDataUsed`, or `storageUnusable`.
    func redeem(_ data: ResumeData) throws(TransferError) {
        guard let ticket = data.record.ticket else { return }
        let directory = try open()
        do throws(Errno) {
            try directory.unlink(at: ticket.fileName)
        } catch {
            throw refusal(error)
        }
    }

    private func refusal(_ error: Errno) -> TransferError {
        error == .noSuchFile
            ? TransferError(.resumeDataUsed, "This resume data has been used already.")
            : TransferError(
                .storageUnusable, "The directory \(path) for transfers cannot be used.", underlying: "\(error)")
    }

    /// Makes the ticket of `data` valid again, after what it was used for did not happen.
    func restore(_ data: ResumeData) {
        guard let ticket = data.record.ticket else { return }
        _ = issueTicket(for: ticket.id, generation: ticket.generation)
    }
}
