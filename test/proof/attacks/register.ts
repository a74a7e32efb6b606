import type { SurfaceName } from '../../support/frontends.js';

/** Where an attack of the list is made: a test by the beginning of its name, and the surfaces that it tries. */
interface Made {
  readonly file: string;
  readonly test: string;
  readonly on: readonly SurfaceName[];
}

export interface Registered {
  readonly n: number;
  readonly made: readonly Made[];
  /** Why the attack has no form on the surfaces that no test tries; null where all are tried. */
  readonly why: string | null;
}

const SIMPLE = 'simple wire';
const EXTENDED = 'extended wire';
const WIRE: readonly SurfaceName[] = [SIMPLE, EXTENDED];
const ALL: readonly SurfaceName[] = [SIMPLE, EXTENDED, 'REST'];

const on = (on: readonly SurfaceName[], file: string, test: string): Made => ({ file, test, on });
const protocol = (test: string, surfaces = WIRE): Made => on(surfaces, 'proof/attacks/protocol', test);
const each = (test: string): Made => on(ALL, 'proof/attacks/surfaces', test);
const native = (test: string): Made => on(ALL, 'proof/attacks/native', test);

/** The attacks that are more than a text, and those of the table that have more tests. */
export const REGISTER: readonly Registered[] = [
  {
    n: 18,
    made: [protocol('18. settings'), on(WIRE, 'proof/attacks/settings', '18. the clock of the caller')],
    why: null,
  },
  { n: 20, made: [protocol('20. COPY')], why: null },
  { n: 24, made: [protocol('24. RESET', [SIMPLE]), each('24. RESET')], why: null },
  { n: 25, made: [protocol('25. a second statement', ALL)], why: null },
  {
    n: 26,
    made: [protocol('26. policy tightened', [EXTENDED]), each('26. policy tightened')],
    why: null,
  },
  { n: 27, made: [protocol('27. NUL in a text', ALL)], why: null },
  {
    n: 28,
    made: [
      protocol('28. Bind that lies', [EXTENDED]),
      protocol('headers and bodies of REST that claim more', ['REST']),
    ],
    why: 'a simple query carries no values',
  },
  {
    n: 29,
    made: [protocol('29. encryption asked for'), on(WIRE, 'wire/tls', 'what came unencrypted behind')],
    why: 'HTTP has no startup packet',
  },
  {
    n: 30,
    made: [
      each('30. cancelling what is not yours'),
      on(WIRE, 'wire/cancel', 'a million wrong keys'),
      on(WIRE, 'engine/postgres', 'a cancel hits no later statement'),
    ],
    why: null,
  },
  {
    n: 31,
    made: [
      each('31. what a session leaves behind'),
      protocol('31. what one session'),
      native('31. one upstream'),
    ],
    why: null,
  },
  { n: 32, made: [protocol('32. function calls')], why: 'HTTP has no such messages' },
  {
    n: 33,
    made: [protocol('33. tokens', ALL), on(ALL, 'policy/token', 'every rule of the actor token')],
    why: null,
  },
  { n: 34, made: [native('the shadows are there')], why: null },
  { n: 35, made: [native('35. ')], why: null },
  {
    n: 36,
    made: [native('36. a superuser upstream'), on([], 'engine/postgres', 'the governed role')],
    why: null,
  },
  { n: 37, made: [on(ALL, 'proof/oracle/groups', 'figures rest on enough rows')], why: null },
  {
    n: 39,
    made: [protocol('39. counts'), on(ALL, 'proof/attacks/random-twin', 'what a clerk may not see')],
    why: null,
  },
  {
    n: 40,
    made: [
      protocol('40. without an audit log', ALL),
      on([], 'audit/fault', 'a disk full from the start'),
      on([], 'audit/verify', 'every tampering is found'),
      on([], 'audit/recover', 'any flipped bit'),
    ],
    why: null,
  },
  {
    n: 42,
    made: [
      on(ALL, 'proof/attacks/corpora', 'hidden documents are '),
      on(['REST'], 'language/forms/twin', 'an index that is brought up to date'),
    ],
    why: null,
  },
  { n: 46, made: [on(ALL, 'proof/attacks/attacks', '46. suggestions')], why: null },
];
