-- SPDX-License-Identifier: BSD-3-Clause
--
-- What Wireshark does not know of Rocade's packets: selective acknowledgements, and how Rocades
-- find each other (doc/sack.md). All the rest is RoCEv2, which it dissects by itself.
--
--   wireshark -X lua_script:rocade.lua x.pcap
--   tshark -X lua_script:rocade.lua -r x.pcap -Y rocade.sack

local SACK, HELLO, HELLO_ACK = 0xc1, 0xc2, 0xc3
local BTH_LEN, AETH_LEN, SACKETH_LEN, HELLOETH_LEN, ICRC_LEN = 12, 4, 8, 12, 4
local BITMAP_MAX_LEN = 64
local PSNS = 0x1000000

local opcode = Field.new("infiniband.bth.opcode")
local rocade = Proto("rocade", "Rocade")
local fields = {
	sack = ProtoField.bool("rocade.sack", "Selective acknowledgement"),
	expected = ProtoField.uint24("rocade.sack.expected", "Expected PSN"),
	syndrome = ProtoField.uint8("rocade.sack.syndrome", "AETH syndrome", base.HEX),
	msn = ProtoField.uint24("rocade.sack.msn", "Message sequence number"),
	seen = ProtoField.uint24("rocade.sack.seen", "PSN that came last"),
	delay = ProtoField.uint32("rocade.sack.delay", "Nanoseconds since then"),
	bitmap = ProtoField.bytes("rocade.sack.bitmap", "Bitmap"),
	kept = ProtoField.string("rocade.sack.kept", "PSNs kept"),
	hello = ProtoField.bool("rocade.hello", "Hello"),
	answer = ProtoField.bool("rocade.hello.answer", "It answers one"),
	offers = ProtoField.uint8("rocade.hello.offers", "What the sender does", base.HEX),
	nonce = ProtoField.uint64("rocade.hello.nonce", "Nonce", base.HEX),
	mark = ProtoField.uint8("rocade.mark", "Mark", base.HEX, nil, 0x3f),
}
rocade.fields = fields

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

-- Bytes between BTH and ICRC. Ethernet may have padded it; UDP, in front of the BTH, has the
-- length.
local function length(tvb, at)
	return math.min(tvb:len() - at, tvb(at - 4, 2):uint() - 8) - BTH_LEN - ICRC_LEN
end

local function hello(tvb, at, pinfo, tree, answer)
	if length(tvb, at) ~= HELLOETH_LEN then
		return
	end

	local helloeth = at + BTH_LEN
	local branch = tree:add(rocade, tvb(at, BTH_LEN + HELLOETH_LEN))

	branch:add(fields.hello, true):set_generated()
	branch:add(fields.answer, answer):set_generated()
	branch:add(fields.offers, tvb(helloeth + 3, 1))
	branch:add(fields.nonce, tvb(helloeth + 4, 8))
	pinfo.cols.info = answer and "HELLO answer" or "HELLO"
end

local function sack(tvb, at, pinfo, tree)
	local len = length(tvb, at) - AETH_LEN - SACKETH_LEN
	if len < 4 or len % 4 ~= 0 or len > BITMAP_MAX_LEN then
		return
	end

	local psn = tvb(at + 9, 3)
	local aeth, sacketh = at + BTH_LEN, at + BTH_LEN + AETH_LEN
	local bitmap = tvb(sacketh + SACKETH_LEN, len)
	local psns = kept(bitmap, psn:uint())
	local branch = tree:add(rocade, tvb(at, BTH_LEN + AETH_LEN + SACKETH_LEN + len))

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

function rocade.dissector(tvb, pinfo, tree)
	local bth = opcode()
	if bth == nil then
		return
	end

	local at = bth.offset
	if bth.value == SACK then
		sack(tvb, at, pinfo, tree)
	elseif bth.value == HELLO or bth.value == HELLO_ACK then
		hello(tvb, at, pinfo, tree, bth.value == HELLO_ACK)
	elseif bit.band(tvb(at + 4, 1):uint(), 0x3f) ~= 0 then
		tree:add(rocade, tvb(at, BTH_LEN)):add(fields.mark, tvb(at + 4, 1))
	end
end

register_postdissector(rocade)
