/** One whole message. */
export interface Message {
  readonly type: string;
  readonly body: Buffer;
}

export interface Cut {
  readonly messages: readonly Message[];
  /** Bytes of a message that is not whole. */
  readonly rest: Buffer;
  /** Where a header cannot be one, what is wrong with it. */
  readonly fault: string | null;
}

const CLIENT = 'QPBDECHSXdcfF';
const SERVER = '123CDEHINRSTZKcdnstv';
const SMALL = 'DECHSXcf';
const MAX_LENGTH = 16 * 1024 * 1024;

/** Cuts bytes into messages as a reader of the documentation would, header by header. */
export function cut(bytes: Buffer, from: 'client' | 'server'): Cut {
  const known = from === 'client' ? CLIENT : SERVER;
  const messages: Message[] = [];
  let at = 0;
  for (;;) {
    const rest = bytes.subarray(at);
    if (rest.length === 0) return { messages, rest, fault: null };
    const type = String.fromCharCode(rest.readUInt8(0));
    if (!known.includes(type)) return { messages, rest, fault: `message type ${JSON.stringify(type)}` };
    if (rest.length < 5) return { messages, rest, fault: null };
    const length = rest.readUInt32BE(1);
    const largest = from === 'client' && SMALL.includes(type) ? 10_000 : MAX_LENGTH;
    if (length < 4 || length > largest) return { messages, rest, fault: `length ${length} of ${type}` };
    if (rest.length < length + 1) return { messages, rest, fault: null };
    messages.push({ type, body: rest.subarray(5, length + 1) });
    at += length + 1;
  }
}

/** The fields of an ErrorResponse. */
export function reportOf(body: Buffer): ReadonlyMap<string, string> {
  const fields = body.toString().split('\0');
  return new Map(fields.flatMap((f) => (f === '' ? [] : [[f.slice(0, 1), f.slice(1)] as const])));
}

/** What may be said to a message so far, and the types that end it. */
interface Rule {
  readonly outline: RegExp;
  readonly last: string;
}

const ANSWERS: ReadonlyMap<string, Rule> = new Map([
  ['P', { outline: /^1$/, last: '1' }],
  ['B', { outline: /^2$/, last: '2' }],
  ['C', { outline: /^3$/, last: '3' }],
  ['D', { outline: /^t?[Tn]?$/, last: 'Tn' }],
  ['E', { outline: /^(D*[Cs]?|Hd*c?C?|I)$/, last: 'CsI' }],
  ['Q', { outline: /^(?!Z)((TD*)?C|Hd*cC|I)*((TD*)?|Hd*c?)E?Z?$/, last: 'Z' }],
  ['S', { outline: /^E?Z$/, last: 'Z' }],
  ['F', { outline: /^E?Z$/, last: 'Z' }],
]);

/**
 * The other side of the protocol: told what the client sent, it says of each message of the server whether it may come
 * now, and whether everything has been answered. Knows no SQL. One per session, from its first ReadyForQuery on.
 */
export class Conversation {
  readonly #asked: Message[] = [];
  /** Portals that ran since they were bound. */
  readonly #ran = new Set<string>();
  #discarding = false;
  /** Of the message that is being answered, the types that came. */
  #said = '';
  /** What the client sent last cannot be a message: the server must say so and go. */
  #faulty = false;
  ended = false;
  fault: string | null = null;
  /** Statements that were answered or refused, each of which must be in the audit log. */
  statements = 0;

  sends(bytes: Cut): void {
    this.#asked.push(...bytes.messages);
    this.#faulty = bytes.fault !== null;
    this.#settle();
  }

  /** Nothing more is due: what only Parse, Bind, Describe, Execute or Close asked for may wait for a Sync or a Flush. */
  get answered(): boolean {
    if (this.ended || this.fault !== null) return true;
    return !this.#faulty && !this.#asked.some(({ type }) => 'SQFHX'.includes(type));
  }

  hears(message: Message): void {
    if (this.fault !== null) return;
    const { type } = message;
    if (type === 'S' || type === 'N') return;
    const asked = this.#asked[0];
    if (this.ended) this.fault = `${type} after the end`;
    else if (type === 'E') this.#error(message, asked);
    else if (asked === undefined) this.fault = `${type}, though nothing was asked`;
    else this.#answer(message, asked);
    this.#settle();
  }

  #error({ body }: Message, asked: Message | undefined): void {
    const report = reportOf(body);
    const code = report.get('C') ?? '';
    if (code === 'XX000' || code === '') this.fault = `an internal error: ${[...report.values()].join(' ')}`;
    if (report.get('S') === 'FATAL') {
      if (code !== '08P01' || asked !== undefined || !this.#faulty)
        this.fault = `FATAL ${code} for ${asked?.type}`;
      this.statements++;
      this.ended = true;
      return;
    }
    if (asked === undefined) this.fault = `an error ${code}, though nothing was asked`;
    if (asked === undefined) return;
    const goesOn = asked.type === 'E' && this.#ran.has(nameIn(asked));
    if (!goesOn) this.statements++;
    if ('PBDECH'.includes(asked.type)) {
      this.#discarding = true;
      this.#done();
    } else if ('QSF'.includes(asked.type) && !this.#said.includes('E')) this.#said += 'E';
    else this.fault = `an error ${code} for ${asked.type} after ${this.#said}`;
  }

  #answer({ type, body }: Message, message: Message): void {
    this.#said += type;
    const portal = nameIn(message);
    if (message.type === 'B') this.#ran.delete(portal);
    // Rows of a cursor belong to its question, which is on record.
    const portion = type === 'C' && /^(FETCH|MOVE) [1-9]/.test(body.toString('utf8'));
    if (message.type === 'Q' && type === 'C' && !portion) this.statements++;
    if (message.type === 'E' && 'Cs'.includes(type)) {
      if (!this.#ran.has(portal) && !portion) this.statements++;
      this.#ran.add(portal);
    }
    const rule = ANSWERS.get(message.type);
    if (rule?.outline.test(this.#said) !== true) this.fault = `${this.#said} for ${message.type}`;
    else if (rule.last.includes(type)) this.#done();
    // Long answers are judged by their outline.
    else this.#said = this.#said.replace(/DD+/, 'D').replace(/dd+/, 'd');
  }

  #done(): void {
    this.#asked.shift();
    this.#said = '';
  }

  /** Passes over what is never answered. */
  #settle(): void {
    for (;;) {
      const asked = this.#asked[0];
      if (asked === undefined || this.ended) return;
      if (asked.type === 'X') {
        this.ended = true;
        return;
      }
      if (asked.type === 'S') {
        this.#discarding = false;
        return;
      }
      const silent = 'dcf'.includes(asked.type) || (asked.type === 'H' && asked.body.length === 0);
      if (!silent && !this.#discarding) return;
      this.#asked.shift();
    }
  }
}

/** The portal that a Bind or an Execute is about. */
function nameIn({ body }: Message): string {
  return body.toString('latin1').split('\0')[0] ?? '';
}
