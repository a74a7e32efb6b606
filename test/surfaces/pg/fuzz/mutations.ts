import type { Dice } from '../../../proof/oracle/dice.js';

const TYPES = Buffer.from('QPBDECHSdcfF');
const NUMBERS = [0, 1, 0x7f, 0x80, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffb, 0xffffffff];

type Messages = readonly Buffer[];

/** The message around another body, its length true. */
function around(message: Buffer, body: Buffer): Buffer {
  const framed = Buffer.concat([message.subarray(0, 1), Buffer.alloc(4), body]);
  framed.writeUInt32BE(body.length + 4, 1);
  return framed;
}

function flipped(bytes: Buffer, dice: Dice): Buffer {
  const copy = Buffer.from(bytes);
  if (copy.length === 0) return copy;
  const at = dice.upTo(copy.length - 1);
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << dice.upTo(7)), at);
  return copy;
}

/** A number of two or four bytes somewhere, which may be a count or a length, is another. */
function lying(bytes: Buffer, dice: Dice): Buffer {
  const width = dice.of([2, 4]);
  if (bytes.length < width) return flipped(bytes, dice);
  const copy = Buffer.from(bytes);
  const number = dice.of(NUMBERS);
  copy.writeUIntBE(width === 2 ? number & 0xffff : number, dice.upTo(copy.length - width), width);
  return copy;
}

function spliced(left: Buffer, right: Buffer, dice: Dice): Buffer {
  return Buffer.concat([left.subarray(0, dice.upTo(left.length)), right.subarray(dice.upTo(right.length))]);
}

function noise(dice: Dice): Buffer {
  return Buffer.from(dice.times(1, 40, () => dice.upTo(255)));
}

type Within = (body: Buffer, other: Buffer, dice: Dice) => Buffer;

const WITHIN: readonly Within[] = [
  (body, _, dice) => flipped(body, dice),
  (body, _, dice) => lying(body, dice),
  (body, _, dice) => body.subarray(0, dice.upTo(body.length)),
  (body, _, dice) => spliced(body, noise(dice), dice),
  spliced,
];

/** One change that leaves every message's length true: what follows is still read as it was meant. */
export function changeMessages(messages: Messages, others: Messages, dice: Dice): Messages {
  const changed = [...messages];
  if (changed.length === 0) return [dice.of(others)];
  const at = dice.upTo(changed.length - 1);
  const message = dice.of(changed.slice(at, at + 1));
  const other = dice.of(others);
  switch (dice.upTo(9)) {
    case 0:
      changed.splice(at, 1);
      break;
    case 1:
      changed.splice(at, 0, message);
      break;
    case 2:
      changed.splice(at, 0, other);
      break;
    case 3:
      changed.splice(at, 1);
      changed.splice(dice.upTo(changed.length), 0, message);
      break;
    case 4:
      changed[at] = Buffer.concat([Buffer.from([dice.of([...TYPES])]), message.subarray(1)]);
      break;
    default:
      changed[at] = around(message, dice.of(WITHIN)(message.subarray(5), other.subarray(5), dice));
  }
  return changed;
}

/** One change of the bytes, wherever messages begin and end. */
export function changeBytes(bytes: Buffer, other: Buffer, dice: Dice): Buffer {
  const from = dice.upTo(bytes.length);
  const to = Math.min(bytes.length, from + dice.upTo(12));
  switch (dice.upTo(6)) {
    case 0:
      return bytes.subarray(0, from);
    case 1:
      return lying(bytes, dice);
    case 2:
      return spliced(bytes, other, dice);
    case 3:
      return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
    case 4:
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]);
    case 5:
      return Buffer.concat([bytes.subarray(0, from), noise(dice), bytes.subarray(from)]);
    default:
      return flipped(bytes, dice);
  }
}
