import Foundation
import SystemCalls

/// The directory of the tickets (``ResumeTicket``) and of the partial files of downloads without a destination.
struct TransferStorage: Sendable {
    let path: FilePath

    /// Opens the directory, and creates it if it is missing.
    ///
    /// - Throws: `storageUnusable` if it cannot be created, is a symbolic link or no directory, belongs to another user,
    ///   or is writable by other users.
    func open() throws(TransferError) -> FileDescriptor {
        do throws(StateError) {
            // The default path can be in a directory where other users create symbolic links.
            return try PrivateDirectory.createDescriptor(path, .noFollow)
        } catch {
            throw TransferError(error)
        }
    }

    // MARK: Tickets

    /// Creates the ticket file of a transfer if it is missing.
    ///
    /// If no file can be created, resume data is issued without a ticket, so that a full disk does not lose a transfer.
    /// - Parameter generation: the generation of the data that is to be issued.
    /// - Returns: a ticket for that data. If `generation` was superseded, the ticket has a later generation. `nil` if
    ///   no file can be created.
    func issueTicket(for id: UUID, generation: Int) -> ResumeTicket? {
        guard let directory = try? open() else { return nil }
        var ticket = ResumeTicket(id: id, generation: generation)
        do throws(Errno) {
            let file = try directory.open(at: ticket.fileName, [.writeOnly, .create, .exclusive, .noFollow])
            try? TicketClaim.write(generation, to: file)
        } catch {
            guard error == .fileExists, let file = try? directory.open(at: ticket.fileName, [.readOnly, .noFollow])
            else { return nil }
            ticket.generation = max(generation, TicketClaim.generation(in: file))
        }
        return ticket
    }

    /// Checks that `data` has not been used up.
    /// - Throws: `resumeDataUsed`, or `storageUnusable`.
    func requireUnused(_ data: ResumeData) throws(TransferError) {
        guard let ticket = data.record.ticket else { return }
        let directory = try open()
        do throws(Errno) {
            let file = try directory.open(at: ticket.fileName, [.readOnly, .noFollow, .nonBlocking])
            guard ticket.generation >= TicketClaim.generation(in: file) else { throw .noSuchFile }
        } catch {
            throw refusal(error)
        }
    }

    /// Claims the transfer that resume data belongs to, so that no other transfer can use the data now. If several
    /// transfers, in any processes, try at the same time, only one succeeds.
    /// - Parameter hasTicket: whether the data has a ticket. Data of checkpoints has none: this data stays valid after
    ///   other data of the transfer was used, but only one transfer at a time can use it.
    /// - Returns: `nil` for data without a ticket if no file can be created. The transfer then runs without a claim.
    /// - Throws: `resumeDataUsed`, or `storageUnusable`.
    func claim(_ ticket: ResumeTicket, hasTicket: Bool) throws(TransferError) -> TicketClaim? {
        guard hasTicket else {
            guard let directory = try? open() else { return nil }
            let claim: TicketClaim?
            do throws(Errno) {
                claim = try TicketClaim.claim(checkpointOf: ticket, in: directory)
            } catch {
                return nil
            }
            guard let claim else { throw Self.busy }
            return claim
        }
        let directory = try open()
        let outcome: TicketClaim.Outcome
        do throws(Errno) {
            outcome = try TicketClaim.claim(ticket, in: directory)
        } catch {
            throw refusal(error)
        }
        switch outcome {
        case .claimed(let claim): return claim
        case .busy: throw Self.busy
        case .missing, .superseded: throw refusal(.noSuchFile)
        }
    }

    private static var busy: TransferError {
        TransferError(.resumeDataUsed, "Another transfer is running with this resume data.")
    }

    private func refusal(_ error: Errno) -> TransferError {
        error == .noSuchFile
            ? TransferError(.resumeDataUsed, "This resume data has been used already.")
            : TransferError(
                .storageUnusable, "The directory \(path) for transfers cannot be used.", underlying: error)
    }
}
