import ResumableTransfer

extension StateFile {
    /// Forgets what an earlier run left, on the server too as far as that can be done quickly.
    /// - Throws: where the user named a file that is none of a state of this command.
    func forget(_ settings: ClientSettings) async throws(CommandFailure) {
        let earlier: (saved: SavedTransfer, resumeData: ResumeData)?
        do throws(CommandFailure) {
            earlier = try load()
        } catch {
            // A file of somebody's choice may be anything.
            if isChosen { throw error }
            earlier = nil
        }
        if let earlier {
            var brief = settings.completed(by: earlier.saved.options)
            brief.retries = 0
            brief.stallTimeout = 5
            let client = try brief.client()
            // What cannot be deleted now expires.
            do throws(TransferError) { try await client.discard(earlier.resumeData) } catch {}
            await client.shutDown()
        }
        remove()
    }
}
