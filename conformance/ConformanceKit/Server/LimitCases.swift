/// Section 4.1.4: the limits of the subject.
enum LimitCases {
    static let all: [Case] = [
        Case(
            "4.1.4/options", .must, "4.1.4", "OPTIONS on a target that accepts uploads reports the limits.",
            covers: "LIM-13 LIM-14", ranks: 8...9
        ) { t in
            let response = try t.options()
            try t.expectSuccess(response, "to OPTIONS")
            _ = try t.require(response.limits, "Upload-Limit", response.summary)
        },
        Case(
            "4.1.4/accept-patch", .should, "4.1.4 of draft -11",
            "OPTIONS lists the media type of appends in Accept-Patch.",
            covers: "LIM-18",
            needs: ["4.1.4/options"], ranks: 8...8
        ) { t in
            let response = try t.options()
            try t.expect(
                response.list("Accept-Patch").contains("application/partial-upload"),
                "Accept-Patch: application/partial-upload", response.fields["Accept-Patch"] ?? "none")
        },
        Case(
            "4.1.4/options-asterisk", .info, "4.1.4",
            "The limits in the response to OPTIONS * are recorded, without a verdict.",
            covers: "LIM-15"
        ) { t in
            let response = try t.exchange(Request("OPTIONS", "*", t.profile.versionFields + t.subject.extraFields))
            t.note(response.summary)
        },
        Case(
            "4.1.4/not-looser", .should, "4.1.4",
            "The limits of an upload are not stricter than those that OPTIONS reports.",
            covers: "LIM-16", needs: ["4.1.4/options", "4.2/create-empty"], ranks: 8...9
        ) { t in
            let announced = try t.options().limits ?? [:]
            let binding = try t.state(of: t.newUpload()).response.limits ?? [:]
            for key in ["max-size", "max-append-size"] {
                guard let later = binding[key] else { continue }
                try t.expect(
                    announced[key] ?? .max <= later, "\(key)=\(later) or less in the response to OPTIONS",
                    announced[key].map { "\($0)" } ?? "no \(key)")
            }
            for key in ["min-size", "min-append-size"] {
                guard let later = binding[key], later > 0 else { continue }
                try t.expect(
                    announced[key] ?? 0 >= later, "\(key)=\(later) or more in the response to OPTIONS",
                    announced[key].map { "\($0)" } ?? "no \(key)")
            }
        },
        Case(
            "4.1.4/other-resource", .info, "4.1.4",
            "The response to OPTIONS on a resource that accepts no uploads is recorded, without a verdict.",
            covers: "LIM-17"
        ) { t in
            let target = "/.well-known/no-such-resource"
            let response = try t.exchange(Request("OPTIONS", target, t.profile.versionFields + t.subject.extraFields))
            t.note("\(target): \(response.summary)")
        },
        Case(
            "4.1.4/max-size", .should, "4.1.4", "A creation whose length exceeds max-size gets 413.",
            covers: "LIM-01 LIM-02 INT-05"
        ) { t in
            let limit = try t.limit("max-size")
            let connection = try t.connect()
            let request = t.creation(complete: true, .declared(limit + 1)).with("Expect", "100-continue")
            t.setLastRequest(request, connection.endpoint)
            try connection.send(request)
            let response = try connection.readResponse()
            try t.expect(response, isOneOf: [413], "to \(limit + 1) bytes")
            try t.expect(response.limits?["max-size"] == limit, "max-size=\(limit)", response.summary)
            try t.expect(!response.interim.contains { $0.status == 100 }, "no 100", "100")
        },
        Case(
            "4.1.4/max-size-counted", .must, "4.1.4", "An upload of unknown length is stopped at max-size.",
            covers: "LIM-03 SEC-11", needs: ["4.4/chunked"]
        ) { t in
            let limit = Int(try t.limit("max-size"))
            guard limit <= 16 << 20 else { throw t.skip("max-size is too large for this case") }
            let connection = try t.connect()
            let request = t.creation(complete: true, .openChunks)
            t.setLastRequest(request, connection.endpoint)
            try connection.send(request)
            var sent = 0
            while sent <= limit + (1 << 20), connection.finalHead == nil, !connection.isOutputBroken {
                let piece = t.bytes(min(256 << 10, max(1024, limit / 4)), from: sent)
                try connection.send(Request.chunk(piece), stoppingAtResponse: true)
                sent += piece.count
            }
            let response = try connection.readResponse()
            try t.expectRefusal(response, "to more than \(limit) bytes")
            if let location = response.announcements.first?.location {
                let upload = try t.upload(at: location, of: request, location)
                try t.expectNeverBeyond(limit, upload)
            }
        },
        Case(
            "4.1.4/max-append-size", .may, "4.1.4",
            "An append larger than max-append-size is refused and changes nothing.",
            covers: "LIM-04", needs: ["4.4/append"]
        ) { t in
            let limit = try t.limit("max-append-size")
            guard limit <= 16 << 20 else { throw t.skip("max-append-size is too large for this case") }
            let upload = try t.newUpload()
            let response = try t.appending(upload, at: 0, complete: false, .bytes(t.bytes(Int(limit) + 1)))
            if response.isSuccessful { throw t.skip("the server does not enforce the limit") }
            try t.expect(response, isOneOf: [413], "to an append of \(limit + 1) bytes")
            try t.expectState(of: upload, offset: 0)
        },
        Case(
            "4.1.4/max-append-size-creation", .may, "4.1.4",
            "A creation with content larger than max-append-size is refused.", covers: "LIM-05", ranks: 8...9
        ) { t in
            let limit = try t.limit("max-append-size")
            guard limit <= 16 << 20 else { throw t.skip("max-append-size is too large for this case") }
            let response = try t.exchange(t.creation(complete: false, .bytes(t.bytes(Int(limit) + 1))))
            if response.isSuccessful { throw t.skip("the server does not enforce the limit") }
            try t.expect(response, isOneOf: [413], "to a creation of \(limit + 1) bytes")
        },
        Case(
            "4.1.4/min-append-size", .may, "4.1.4",
            "An append with ?0 that is smaller than min-append-size is refused and changes nothing.", covers: "LIM-06",
            needs: ["4.4/append"]
        ) { t in
            let limit = try t.limit("min-append-size")
            guard limit > 1 else { throw t.skip("min-append-size is too small for this case") }
            let upload = try t.newUpload()
            let response = try t.appending(upload, at: 0, complete: false, .bytes(t.bytes(Int(limit) - 1)))
            if response.isSuccessful { throw t.skip("the server does not enforce the limit") }
            try t.expectRefusal(response, "to an append of \(limit - 1) bytes")
            try t.expectState(of: upload, offset: 0)
        },
        Case(
            "4.1.4/last-append", .must, "4.1.4", "An append with ?1 may be smaller than min-append-size.",
            covers: "LIM-07",
            needs: ["4.4/finish"], ranks: 6...9
        ) { t in
            _ = try t.limit("min-append-size")
            for count in [0, 1] {
                let upload = try t.newUpload(t.partSize)
                let content = Request.Content.bytes(t.bytes(count, from: t.partSize))
                try t.expectSuccess(
                    t.appending(upload, at: Int64(t.partSize), complete: true, content),
                    "to a last append of \(count) bytes")
            }
        },
        Case(
            "4.1.4/empty-appends", .should, "13", "Appends without content do not extend the lifetime of an upload.",
            covers: "SEC-09 SEC-10", needs: ["4.4/append"], ranks: Profile.explicitRanks
        ) { t in
            if t.subject.limits["min-append-size", default: 0] > 0 { throw t.skip("there is a min-append-size") }
            let upload = try t.newUpload(t.partSize)
            guard let before = try t.state(of: upload).response.limits?["max-age"] else {
                throw t.skip("there is no max-age")
            }
            guard before > 5 else { throw t.skip("a max-age of \(before) s is too short") }
            Deadline.pause(.milliseconds(2100))
            try t.setup {
                let empty = try t.appending(upload, at: Int64(t.partSize), complete: false, .bytes([]))
                try t.expectSuccess(empty, "to an empty append")
            }
            let after = try t.state(of: upload).response.limits?["max-age"] ?? 0
            try t.expect(after < before, "a max-age of less than \(before)", "\(after)")
        },
        Case(
            "4.1.4/min-size", .may, "4.1.4", "A representation smaller than min-size is accepted without resumability.",
            covers: "LIM-09", needs: ["4.2/complete"]
        ) { t in
            let limit = try t.limit("min-size")
            guard limit > 1 else { throw t.skip("min-size is too small for this case") }
            let response = try t.exchange(t.creation(complete: true, .bytes(t.bytes(Int(limit) - 1))))
            try t.expectSuccess(response, "from the target for \(limit - 1) bytes")
            t.note(response.announcements.isEmpty ? "no 104 is sent" : "104 is sent")
        },
    ]
}

extension CaseContext {
    func options() throws -> Response {
        try exchange(Request("OPTIONS", subject.newTarget(), profile.versionFields + subject.extraFields))
    }

    func limit(_ name: String) throws -> Int64 {
        guard let value = subject.limits[name] else { throw skip("there is no \(name)") }
        return value
    }
}
