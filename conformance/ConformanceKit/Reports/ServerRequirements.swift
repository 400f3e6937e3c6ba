/// The requirements of `Tests/requirements.tsv` for servers. Each line has an ID, a level, a section and a text.
enum ServerRequirements {
    static let table = #"""
        CRE-01|SHOULD|4.2.2|A request with a valid Upload-Complete on a supporting target creates an upload resource and announces it with 104
        CRE-02|MUST|4.2.2|The announcing 104 of a creation carries Location of the upload resource
        CRE-03|MUST|4.2.2|The announcing 104 carries Upload-Limit when limits exist
        CRE-04|MUST|4.2.2|Creation with ?0 fully processed answers with Location of the upload resource
        CRE-05|MUST|4.2.2|Creation with ?0 fully processed answers with Upload-Limit when limits exist
        CRE-06|SHOULD|4.2.2|Creation with ?0 uses 201
        CRE-07|SHOULD|4.2.2|Creation responses state Upload-Complete
        CRE-08|MUST|4.2.1|Creation works for every content-bearing method of the target (POST, PUT, PATCH)
        CRE-09|MUST|4.2|Request without Upload-Complete is processed as a plain request with no 104 and no upload resource
        CRE-10|MUST|4.1.2|Invalid Upload-Complete is ignored so the request is a plain one
        CRE-11|MUST|4.2.2|All Location values for one creation request (104s and non-final-processing final response) are identical strings
        CRE-12|MAY|4.2.2|With Upload-Complete: ?1 in the response the Location may be the application's
        CRE-13|MUST|4.2.1|Empty content with ?1 creates and completes a zero-length representation
        CRE-14|MUST|4.2.1|Empty content with ?0 creates an incomplete upload at offset 0
        CRE-15|SHOULD|4.2.2|Interrupted creation keeps the contiguous prefix
        CRE-16|MUST|4.2.2|Interrupted creation never becomes complete
        CRE-17|MUST|4.2.2|Length is recorded from Upload-Length at creation
        CRE-18|MUST|4.2.2|Length is recorded from Content-Length plus ?1 at creation even when interrupted
        CRE-19|MUST|4.2.2|The target resource processes the complete representation with the creation request's method and header fields
        CRE-20|MAY|4.2.2|Server may decline to create an upload resource and process the request plainly
        CRE-21|MAY|4.2.2|Several progress 104s with Upload-Offset while receiving creation content
        CRE-22|MUST|4.1.2|Early final response of the target is marked ?1 and ends the upload
        CRE-23|SHOULD|4.2.2 ex C|Server-side failure leaves the announced upload resumable
        CRE-24|MUST|4|Two creations yield two distinct upload resources
        CRE-25|SHOULD|4|Upload URIs are not reused for another upload
        CRE-26|MUST|4.2.2|The upload URI is usable as soon as it is announced
        CRE-27|SHOULD|RFC9110 10.2.2|Location may be absolute or a reference and resolves against the request target
        CRE-28|SHOULD|policy|Upload-Offset in a creation request is ignored for v7/v8
        CRE-29|MUST|4.2.2, 9|A creation with chunked coding and ?1 completes at the terminating chunk
        OFF-01|MUST|4.3.2|HEAD on an upload resource returns Upload-Offset
        OFF-02|MUST|4.3.2|HEAD returns Upload-Complete
        OFF-03|MUST|4.3.2|HEAD returns Upload-Length when the client ever supplied a length
        OFF-04|MUST|4.3.2|HEAD omits Upload-Length when no length was supplied
        OFF-05|MUST|4.3.2|HEAD returns Upload-Limit with current limits
        OFF-06|SHOULD|4.3.2|HEAD sends Cache-Control: no-store
        OFF-07|MUST|4.3.2|GET on an upload resource gives the same fields as HEAD
        OFF-08|SHOULD|4.3.2 policy|GET on an upload resource has no content (204)
        OFF-09|MUST|4.1.1|Offset never decreases over the upload's life
        OFF-10|MUST|4.1.1|HEAD offset is at least any offset published earlier (104, 409, 2xx)
        OFF-11|MUST|4.6|The offset returned is accepted by the next PATCH
        OFF-12|MUST|4.3.2|Unknown upload URI is not reported as an upload
        OFF-13|SHOULD|4.3.2|Retrieval does not answer 301/302
        OFF-14|MUST|4.3.2|While fully received content is still being processed HEAD reports ?0
        OFF-15|MUST|4.1.1|If any state is lost the upload is deactivated
        OFF-16|SHOULD|4.1.4|max-age in HEAD counts down
        OFF-17|SHOULD|RFC9110 9.3.2|Body on HEAD is never sent
        OFF-18|SHOULD|4.1.1 policy|Upload-Offset reflects durable bytes only
        APP-01|MUST|4.4.2|PATCH partial-upload with matching offset appends the content
        APP-02|MUST|4.4.2|Non-completing append answers 2xx with Upload-Complete: ?0
        APP-03|MUST|4.4.2|Completing append marks the upload complete and answers ?1
        APP-04|SHOULD|4.4.2|Completing append returns what the target would have returned for a one-shot request
        APP-05|MUST|4.4.2|Offset mismatch → 409
        APP-06|MUST|4.4.2|409 carries the current Upload-Offset
        APP-07|MUST|4.4.2|409 carries Upload-Complete: ?0
        APP-08|MUST|4.4.2|A rejected append changes nothing
        APP-09|MUST|4.4.1|PATCH ?1 with no content at offset n finishes the upload
        APP-10|MUST|4.4.1|PATCH ?0 with no content is a no-op success
        APP-11|MUST|4.4.2|Append progress 104s have no Location
        APP-12|SHOULD|4.4.2|Append sends progress 104 with Upload-Offset
        APP-13|SHOULD|4.4.2|Interrupted append keeps the contiguous prefix
        APP-14|MUST|4.4.2|Interrupted ?1 append is not complete
        APP-15|SHOULD|policy 4.4.1|Missing or invalid Upload-Offset on append → 400
        APP-16|SHOULD|policy 4.4.1|Missing or invalid Upload-Complete on append (v7/v8) → 400
        APP-17|SHOULD|policy RFC5789 2.2|Wrong media type on append → 415 with Accept-Patch
        APP-18|MUST|RFC9110 8.3.1|Media type match is case-insensitive and tolerates parameters
        APP-19|MUST|4.1.2|Completed upload is never modified
        APP-20|MAY|4.4.2|Valid repeat of the finishing append replays the stored final response
        APP-21|MUST|4.1.2|Rejection of an append to a completed upload never uses ?1 unless it is the target's answer
        APP-22|SHOULD|policy 8|Append with Content-Encoding is refused
        APP-23|MUST|8|Representation metadata of the creation stays in force
        APP-24|MUST|4.4|Append to unknown/cancelled/expired/invalid upload is refused
        APP-25|MUST|4.1.1|Large offsets and totals are handled without wrap
        APP-26|SHOULD|4.4.1|307/308 on append keep method and body semantics
        APP-27|SHOULD|RFC9110 15.5.6|Non-PATCH, non-HEAD/GET/DELETE/OPTIONS methods on the upload URI → 405 + Allow
        APP-28|MUST|policy 4.4.2|Target is executed at most once per upload
        CMP-01|MUST|4.1.3|Reaching the length does not complete an upload (versions 7, 8, RFC; in 5 and 6 see VER-24)
        CMP-02|MUST|4.1.2|Only ?1 request fully processed or ?1 response completes
        CMP-03|MUST|4.4.1|Failing target after full receipt still gives ?1 (4xx/5xx)
        CMP-04|MAY|4|Upload resource remains available after completion
        CMP-05|SHOULD|4|Final response retention ends at max-age and then 404/410
        CAN-01|SHOULD|4.5.2|DELETE deactivates the upload
        CAN-02|SHOULD|4.5.1|DELETE frees stored bytes and quota
        CAN-03|SHOULD|4.5.2|DELETE aborts in-flight creation/append first
        CAN-04|SHOULD|4.5.2|DELETE never answers 301/302
        CAN-05|SHOULD|policy|Second DELETE is harmless
        CAN-06|MUST|4.6|DELETE and PATCH racing leave no corrupt or resurrected upload
        CAN-07|MUST|4.5|Target is not invoked for a cancelled upload
        CON-01|SHOULD|4.6|New HEAD terminates a running append of the same upload
        CON-02|SHOULD|4.6|New PATCH terminates a running append/creation
        CON-03|MUST|4.6|No corruption under concurrent appends
        CON-04|MUST|4.6|Late bytes of a superseded request are never appended
        CON-05|MUST|4.6 policy|On HTTP/2 only the superseded stream is reset
        CON-06|MUST|policy 4.6|Take-over works across server processes sharing storage
        CON-07|MUST|4.6|A stuck peer cannot block the upload for ever
        CON-08|MUST|4.6|HEAD during take-over counts exactly the accepted bytes
        CON-09|MUST|policy 4.6|A request in target processing is not killed by HEAD
        CON-10|MUST|4.6|PATCH on another upload is unaffected
        LEN-01|MUST|4.1.3|Content-Length+?1 must equal Upload-Length in the same request
        LEN-02|MUST|4.1.3|Later indications must equal the recorded length
        LEN-03|MUST|4.1.3|offset+Content-Length with ?1 must equal the recorded length
        LEN-04|MAY|4.1.3, 7.2|Inconsistent length uses problem type inconsistent-upload-length
        LEN-05|MUST|4.4.2|Offset never exceeds a known length even with chunked/h2 unknown length
        LEN-06|MUST|4.4.2|After an overrun the upload is invalid for all further requests
        LEN-07|MUST|4.4.2|Overrun is detected without waiting for the body to end
        LEN-08|MUST|4.1.3|?1 with fewer bytes than the known length does not complete
        LEN-09|MUST|4.1.3|Length may first appear on a later append
        LEN-10|MUST|4.1.3|Upload-Length below the current offset is refused
        LEN-11|MUST|4.1.3|Upload-Length 0 with ?1 and empty content works
        LEN-12|MUST|policy|Content-Length sums are overflow-safe
        LEN-13|SHOULD|policy|Offset mismatch is reported before length inconsistency
        LEN-14|MUST|4.1.3|An indicator in an ignored (invalid) header does not count
        LIM-01|SHOULD|4.1.4|Length above max-size is refused at creation
        LIM-02|SHOULD|4.1.4|413 from upload limits carries Upload-Limit
        LIM-03|MUST|4.1.4|Unknown-length upload is stopped at max-size
        LIM-04|MAY|4.1.4|Append larger than max-append-size is refused
        LIM-05|MAY|4.1.4|Creation content larger than max-append-size is refused
        LIM-06|MAY|4.1.4|Append smaller than min-append-size with ?0 is refused
        LIM-07|MUST|4.1.4|min-append-size does not apply to ?1 requests
        LIM-08|MUST|4.1.4|min-append-size does not apply to empty creation
        LIM-09|MAY|4.1.4|Representation smaller than min-size is accepted without resumability
        LIM-10|SHOULD|4.1.4|max-size and max-append-size do not decrease during an upload
        LIM-11|SHOULD|4.1.4|min-size and min-append-size do not increase during an upload
        LIM-12|SHOULD|4.1.4|End of life implied by max-age does not move earlier
        LIM-13|MUST|4.1.4|OPTIONS without Upload-Complete on a supporting target has Upload-Limit
        LIM-14|MUST|4.1.4|Without limits the value is min-size=0, not empty
        LIM-15|SHOULD|4.1.4|OPTIONS * carries Upload-Limit when all resources share limits
        LIM-16|SHOULD|4.1.4|OPTIONS limits are not looser than later limits
        LIM-17|MUST|4.1.4|OPTIONS on a non-supporting target has no Upload-Limit
        LIM-18|SHOULD|-10/-11|OPTIONS also lists Accept-Patch: application/partial-upload
        LIM-19|MUST|4.1.4|Expired upload is inaccessible and its storage freed
        LIM-20|SHOULD|4.1.4|All emitted Upload-Limit values are SF Integers of ≤15 digits
        DIG-01|SHOULD|10.1|Repr-Digest of creation is verified at completion over all requests
        DIG-02|SHOULD|10.2|Content-Digest mismatch → content not appended and failure reported
        DIG-03|SHOULD|10.1|Want-Repr-Digest is answered at completion with a supported algorithm
        DIG-04|MUST|10, 8, 9|Digests are computed on content-coded, transfer-decoded bytes
        DIG-05|MUST|RFC9530|Unknown algorithms are ignored; known ones still checked
        DIG-06|SHOULD|RFC9530|Unparsable digest field is ignored or 400, never treated as match
        DIG-07|SHOULD|policy|Bytes under an unverified Content-Digest are not published in 104/HEAD
        DIG-08|SHOULD|RFC9530|Want value 0 excludes that algorithm
        DIG-09|SHOULD|RFC9530 6|sha-256 and sha-512 are supported; insecure algorithms are not used for checks
        DIG-10|MAY|10.1|Running Repr-Digest on incomplete responses equals digest of bytes so far
        PRB-01|MAY|7.1|409 body is problem+json with mismatching-upload-offset
        PRB-02|SHOULD|7.1|That problem has expected-offset and provided-offset as numbers
        PRB-03|MUST|RFC9457 3.1|Problem responses use application/problem+json and status equals status member if present
        PRB-04|SHOULD|7|completed-upload is sent only to dialects that define it (v6, v7, v8 ≤ -11)
        PRB-05|MUST|13|Problem details reveal no internal paths or stack traces
        PRB-06|MUST|RFC9110 9.3.2|HEAD errors have no body
        STF-01|MUST|RFC9651 4.2|Upload-Offset accepts leading zeros, -0 and parameters
        STF-02|MUST|RFC9651|Upload-Offset +5 is ignored
        STF-03|MUST|4.1.1|Upload-Offset 5.0, "5", ?1, token, byte sequence, date are ignored
        STF-04|MUST|4.1.1|Negative Upload-Offset/Upload-Length is ignored
        STF-05|MUST|RFC9651 3.3.1|Integers over 15 digits fail parsing
        STF-06|MUST|RFC9651 4.2|Repeated Item fields (two lines or comma) are ignored
        STF-07|MUST|4.1.2|Upload-Complete only ?0/?1 with optional parameters
        STF-08|MUST|RFC9651 4.1|Emitted fields are canonical SF
        STF-09|MUST|RFC9110 6.5.1|Upload-* fields in trailers are not used
        STF-10|MUST|App B|Upload-Draft-Interop-Version is parsed as SF Integer
        STF-11|MUST|RFC9110 5.1|Field names are case-insensitive
        STF-12|MUST|RFC9651|structured-field-tests corpus passes (item, number, boolean, dictionary, binary)
        INT-01|MUST|5|100 Continue is still sent although 104 was sent
        INT-02|MUST|RFC9110 15.2|No 1xx to HTTP/1.0 clients
        INT-03|MUST|RFC9110 15.2|No 1xx after the final response started
        INT-04|MUST|RFC9110 8.6|1xx have no content, Content-Length or Transfer-Encoding
        INT-05|SHOULD|RFC9110 10.1.1|With Expect and a refusal the final status is sent without 100
        INT-06|SHOULD|policy|Failure to write a 104 does not abort receiving
        INT-07|SHOULD|policy|104 frequency is bounded
        INT-08|MUST|4.1.1|104 offsets never exceed a later HEAD
        INT-09|MAY|RFC9110 10.1.1|Unknown Expect value → 417
        VER-01|MUST|App B|No 104 when the version header is missing (draft mode)
        VER-02|MUST|App B|No 104 when the version is unsupported
        VER-03|MUST|App B|104 echoes the request's version
        VER-04|SHOULD|App B|RFC mode sends 104 without header and without version field
        VER-05|MUST|-01|v3 uses Upload-Incomplete inverted in both directions
        VER-06|MUST|-01|v3 PATCH without Upload-Incomplete completes
        VER-07|MUST|-02..-05|v4–v6 PATCH without Upload-Complete does not complete
        VER-08|MUST|-01..-03|v3–v5 PATCH needs no media type
        VER-09|MUST|-04|v6+ PATCH needs application/partial-upload
        VER-10|MUST|-01..-05|v3–v6 final creation/append responses carry Upload-Offset while active, also 409
        VER-11|MUST|-01..-05|v3–v6 final creation response has Location = upload URI even if complete
        VER-12|MUST|-01..-05|v3–v6 incomplete append answers 201
        VER-13|MUST|-01..-03|v3/v4 HEAD answers 204; v5/v6 204 or 200
        VER-14|MUST|-01..-05|v3–v6 HEAD and DELETE carrying Upload-Offset/-Complete/-Incomplete → 400
        VER-15|MUST|-01..-05|v3–v6 unknown or inactive upload → 404
        VER-16|MUST|-01..-08|v3–v7 DELETE success is 204
        VER-17|MUST|-04/-05|v6 append to a completed upload → 400
        VER-18|MUST|-03..-09|v5–v7 (and -09) later 104s have no Location
        VER-19|SHOULD|-04/-06|v6 lifetime key is expires, v7+ max-age
        VER-20|MUST|-06..-08|v7 every append response that did not complete has ?0, completing has ?1
        VER-21|MUST|-06+|v7/v8 409 has Upload-Offset and ?0
        VER-22|MUST|policy|An upload created in one version can be continued in another
        VER-23|SHOULD|compat|tus-js-client v5/v6: Location on creation and Upload-Offset on all chunk responses
        VER-24|SHOULD|compat|Compat: in v5/v6 content that reaches the declared Upload-Length completes the upload, 0 included, as tusd does
        VER-25|MUST|-02|v4+ length from Content-Length with ?1 is recorded; mismatch → 400
        VER-26|MUST|-05|v6 (-05) HEAD returns Upload-Length if recorded
        VER-27|SHOULD|compat|Version header is exposed and allowed in CORS
        RED-01|MUST|-01..-08|≤v7 HEAD/DELETE never 301/302
        CCH-01|SHOULD|4.3.2|Retrieval responses are not cacheable
        CCH-02|SHOULD|RFC9111 3|Interim responses and upload responses never stored by an own cache layer
        SEC-01|SHOULD|13|Upload URIs carry ≥128 random bits
        SEC-02|SHOULD|13|Every access to the upload resource is authorized as the creator
        SEC-03|MUST|13|No internal information in the upload URI
        SEC-04|MUST|13|File name metadata is sanitized
        SEC-05|SHOULD|13|Authorization is checked again at completion
        SEC-06|SHOULD|13|Quota is checked again at completion and counts all appends
        SEC-07|SHOULD|13|Minimum transfer rate / idle timeout for bodies
        SEC-08|SHOULD|13|Number of open uploads per client is limited
        SEC-09|SHOULD|13|Upload lifetime is limited
        SEC-10|SHOULD|13|Empty PATCHes do not extend life indefinitely
        SEC-11|MUST|13|Size limits are enforced on actual bytes, not headers
        SEC-12|SHOULD|13|Content scanning happens on the assembled representation
        SEC-13|SHOULD|13|Stored content is served as data (nosniff, attachment)
        SEC-14|MUST|13|Upload id cannot traverse the store
        SEC-15|SHOULD|policy|Upload URIs are not logged in full or leaked by Referer
        SEC-16|SHOULD|policy|Existence of foreign uploads is not distinguishable
        SEC-17|MUST|4.1.1|Disk-full leaves offsets truthful
        SEC-18|MUST|RFC9110 5.5|Header values copied to responses cannot split responses
        XCO-01|SHOULD|policy|CORS preflight allows PATCH, HEAD, DELETE and Upload-* request fields
        XCO-02|SHOULD|policy|CORS exposes Location and Upload-* response fields
        H11-01|MUST|RFC9112 6.1|Both Transfer-Encoding and Content-Length → connection closed after the response (preferably 400)
        H11-02|MUST|RFC9112 6.3|Differing Content-Length values → 400 and close
        H11-03|MUST|RFC9112 6.3|Non-digit Content-Length (+5, 0x5, 5 5, -1, 10^30) → 400 and close
        H11-04|MUST|RFC9112 6.3|Request whose last coding is not chunked → 400 and close
        H11-05|SHOULD|RFC9112 6.1|Unknown transfer coding → 501
        H11-06|MUST|RFC9112 6.1|Transfer-Encoding in HTTP/1.0 is faulty framing → close
        H11-07|MUST|RFC9112 5.1|Whitespace before colon → 400
        H11-08|MUST|RFC9112 5.2|obs-fold rejected or replaced
        H11-09|MUST|RFC9112 3.2|Missing, duplicate or invalid Host in 1.1 → 400
        H11-10|MUST|RFC9112 7.1|Chunk size overflow, sign, empty, whitespace rejected
        H11-11|SHOULD|RFC9112 7.1|Chunk extensions and trailers ignored but bounded
        H11-12|MUST|RFC9112 8|EOF before the last chunk is an interruption, not an end
        H11-13|MUST|RFC9112 8|EOF before Content-Length bytes is an interruption
        H11-14|MUST|RFC9112 9.3|Unread body → drain or close; leftover never parsed as a request
        H11-15|SHOULD|RFC9112 9.6|Early error is readable by a client still writing (lingering close)
        H11-16|MUST|RFC9112 9.3.2|Pipelined requests after an upload are answered in order
        H11-17|MUST|RFC9112 7.1|Missing CRLF after chunk data → 400 + close
        H11-18|SHOULD|RFC9110 15.5.15|Request line and header section limits → 414/431
        H11-19|MUST|RFC9113 8.1.1|HTTP/2 content-length mismatch is a stream error
        H11-20|SHOULD|RFC9113 8.1|HTTP/2 early response ends with RST_STREAM NO_ERROR
        H11-21|MUST|RFC9112 6.1|Duplicate chunked coding refused
        H11-22|MUST|RFC9112 2.2, RFC9110 5.5|Bare CR / NUL in header, trailer or chunk line → 400 (RFC 9110 5.5 allows SP in place of NUL and bare CR in values; we refuse)
        H11-23|SHOULD|policy|Bare LF in chunk framing refused
        H11-24|SHOULD|policy|Memory per upload is bounded by back-pressure
        H11-25|SHOULD|policy|Graceful stop keeps uploads resumable
        H11-26|MUST|RFC9112 3.2|Absolute-form and asterisk-form targets handled
        RNG-01|MUST|RFC9110 14.2|Range is ignored for methods other than GET
        RNG-02|MUST|RFC9110 14.2|Unknown range unit is ignored
        RNG-03|SHOULD|RFC9110 15.3.7|Satisfiable single range → 206 with Content-Range and exact bytes
        RNG-04|MUST|RFC9110 14.1.2|Open-ended and over-long ranges clamp to the end
        RNG-05|MUST|RFC9110 14.1.2|Suffix range, longer than representation → all
        RNG-06|SHOULD|RFC9110 15.5.17|Unsatisfiable → 416 with Content-Range: bytes */N
        RNG-07|MAY|RFC9110 14.2|Invalid ranges-specifier is ignored
        RNG-08|MUST|RFC9110 15.3.7.2|Multiple ranges → multipart/byteranges, per-part Content-Range, none at top level
        RNG-09|MUST|RFC9110 15.3.7.2|Single requested range is never multipart
        RNG-10|SHOULD|RFC9110 15.3.7.2|Parts in requested order minus unsatisfiable ones
        RNG-11|MAY|RFC9110 14.2|Many or overlapping ranges are refused, or the complete representation is served
        RNG-12|MUST|RFC9110 13.1.5|If-Range with matching strong tag → 206; weak or different → 200
        RNG-13|MUST|RFC9110 13.1.5|If-Range date matches only exact strong Last-Modified
        RNG-14|MUST|RFC9110 13.1.5|If-Range without Range is ignored
        RNG-15|MUST|RFC9110 13.2.2|Precondition order is kept
        RNG-16|MUST|RFC9110 13.1|If-Match strong, If-None-Match weak comparison
        RNG-17|MUST|RFC9110 15.3.7|206 carries ETag, Date, Cache-Control, Expires, Content-Location, Vary as the 200 would
        RNG-18|SHOULD|RFC9110 14.3|Accept-Ranges: bytes on 200 and HEAD
        RNG-19|MUST|RFC9110 8.8.3|Strong ETag differs for different bytes and codings
        RNG-20|MUST|RFC9110 8.8|Replacement during download never mixes versions
        RNG-21|MUST|policy|Numbers beyond 64 bit do not wrap
        RNG-22|MAY|RFC9110 14.2|Empty representation: suffix → 200 empty; bytes=0- → 416 */0
        RNG-23|MUST|RFC9110 5.3|Two Range header lines or malformed list handled as invalid
        RNG-24|MUST|RFC9110 15|416 and 304 and 412 carry no representation bytes
        RNG-25|SHOULD|RFC9110 14.6|Multipart boundary does not occur in content
        RNG-26|MUST|RFC9112 6|Content-Length of multipart equals bytes sent
        """#
}
