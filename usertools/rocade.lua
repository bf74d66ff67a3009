-- SPDX-License-Identifier: BSD-3-Clause
--
-- What Wireshark does not know of Rocade's packets: selective acknowledgements (doc/sack.md). All
-- the rest is RoCEv2, which it dissects by itself.
--
--   wireshark -X lua_script:rocade.lua x.pcap
--   tshark -X lua_script:rocade.lua -r x.pcap -Y rocade.sack

local SACK = 0xc1
local BTH_LEN, AETH_LEN, SACKETH_LEN, ICRC_LEN = 12, 4, 8, 4
local BITMAP_MAX_LEN = 64
local PSNS = 0x1000000

local opcode = Field.new("infiniband.bth.opcode")
local sack = Proto("rocade", "Rocade")
local fields = {
	sack = ProtoField.bool("rocade.sack", "Selective acknowledgement"),
	expected = ProtoField.uint24("rocade.sack.expected", "Expected PSN"),
	syndrome = ProtoField.uint8("rocade.sack.syndrome", "AETH syndrome", base.HEX),
	msn = ProtoField.uint24("rocade.sack.msn", "Message sequence number"),
	seen = ProtoField.uint24("rocade.sack.seen", "PSN that came last"),
	delay = ProtoField.uint32("rocade.sack.delay", "Nanoseconds since then"),
	bitmap = ProtoField.bytes("rocade.sack.bitmap", "Bitmap"),
	kept = ProtoField.string("rocade.sack.kept", "PSNs kept"),
}
sack.fields = fields

-- PSNs with their bit set, as "first-last" and "one", in order.
local function kept(bitmap, expected)
	local out, first = {}, nil
	local bits = bitmap:len() * 8

	for i = 0, bits do
		local set = i < bits and
			bit.band(bitmap(math.floor(i / 8), 1):uint(), bit.lshift(1, i % 8)) ~= 0

		if set and first == nil then
			first = i
		elseif not set and first ~= nil then
			local from, to = (expected + 1 + first) % PSNS, (expected + i) % PSNS

			table.insert(out, from == to and tostring(from) or from .. "-" .. to)
			first = nil
		end
	end
	return table.concat(out, " ")
end

function sack.dissector(tvb, pinfo, tree)
	local bth = opcode()
	if bth == nil or bth.value ~= SACK then
		return
	end

	local at = bth.offset
	local len = tvb:len() - at - BTH_LEN - AETH_LEN - SACKETH_LEN - ICRC_LEN
	-- Ethernet may have padded it; UDP, in front of the BTH, has the length.
	len = math.min(len, tvb(at - 4, 2):uint() - 8 - BTH_LEN - AETH_LEN - SACKETH_LEN - ICRC_LEN)
	if len < 4 or len % 4 ~= 0 or len > BITMAP_MAX_LEN then
		return
	end

	local psn = tvb(at + 9, 3)
	local aeth, sacketh = at + BTH_LEN, at + BTH_LEN + AETH_LEN
	local bitmap = tvb(sacketh + SACKETH_LEN, len)
	local psns = kept(bitmap, psn:uint())
	local branch = tree:add(sack, tvb(at, BTH_LEN + AETH_LEN + SACKETH_LEN + len))

	branch:add(fields.sack, true):set_generated()
	branch:add(fields.expected, psn)
	branch:add(fields.syndrome, tvb(aeth, 1))
	branch:add(fields.msn, tvb(aeth + 1, 3))
	branch:add(fields.seen, tvb(sacketh + 1, 3))
	branch:add(fields.delay, tvb(sacketh + 4, 4))
	branch:add(fields.bitmap, bitmap)
	branch:add(fields.kept, bitmap, psns)
	pinfo.cols.info = "SACK expected " .. psn:uint() .. " kept " .. psns
end

register_postdissector(sack)
