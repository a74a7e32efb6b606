import { createPgFrontend } from '../../../../src/surfaces/pg/index.js';
import { makeScramVerifier, type WireServer } from '../../../../wire/index.js';
import { sealedParts, sealing } from '../../../support/sealed-parts.js';
import { startTestService, type TestService } from '../../../support/service.js';
import { SHOP_POLICY, SHOP_SCRIPT } from '../../../support/shop.js';
import { watchedLog } from '../../../support/watched-log.js';

/** The shop behind the wire, with so many masked callers, and what each of them has in the audit log. */
export interface World {
  readonly port: number;
  readonly shop: TestService;
  readonly frontend: WireServer;
  readonly callers: readonly Caller[];
  /** Decisions about this subject since the start. */
  decisions(subject: string): number;
  close(): Promise<void>;
}

export interface Caller {
  readonly subject: string;
  /** A fresh one from time to time: they live for 300 s, a world for longer. */
  readonly token: string;
  /** Its service account, whose password is `PASSWORD`. */
  readonly account: string;
}

const RENEW_MS = 60_000;

export const PASSWORD = 'correct horse, battery: staple';

/** What no caller of a world may be shown, as text and in binary. */
const HIDDEN: readonly Buffer[] = [
  ...['ada@eu.example', 'bo@eu.example', 'cy@us.example', 'TAXNO-', '1990-05-17', '1985-01-02', '1979-12-31'],
].map((value) => Buffer.from(value));
/** 1990-05-17 in days from 2000. */
const BORN = Buffer.from('fffff244', 'hex');

export function hiddenIn(bytes: Buffer): readonly string[] {
  return [...HIDDEN, BORN].filter((value) => bytes.includes(value)).map((value) => value.toString());
}

/** What an address may do is not limited: all callers have the same one. */
export async function openWorld(count: number): Promise<World> {
  const names = Array.from({ length: count }, (_, i) => `user:f${i}`);
  const scram = await makeScramVerifier(PASSWORD);
  const subjects = names.map((name) => `  ${name}: { ceiling: [analyst] }\n`).join('');
  const accounts = names
    .map((name, i) => `  account${i}: { subject: ${name}, scram: "${scram}" }\n`)
    .join('');
  const policy = SHOP_POLICY.replace('subjects:\n', `subjects:\n${subjects}`);
  const shop = await startTestService({
    embedded: true, // what it says no process beside it shapes
    policy: `${policy}\nservice_accounts:\n${accounts}`,
    script: SHOP_SCRIPT.replace(/'(..-[123])'/g, "'TAXNO-$1'"),
  });
  const decisions = new Map<string, number>();
  const { service } = shop.open;
  const sealed = sealedParts(service);
  const limiter = {
    ...sealed.limiter,
    takeAddress: () => ({ ok: true as const }),
    guesses: { countWrong: () => undefined, acceptsRight: () => true },
  };
  const audit = watchedLog(sealed.audit, ({ kind, subject }) => {
    if (kind === 'decision' && subject) decisions.set(subject, (decisions.get(subject) ?? 0) + 1);
  });
  const frontend = createPgFrontend(sealing(service, { limiter, audit }));
  const { port } = await frontend.listen(0, '127.0.0.1');
  const tokens = new Map<string, string>();
  const renew = async (): Promise<void> => {
    for (const subject of names) tokens.set(subject, await shop.token(subject));
  };
  await renew();
  const renewing = setInterval(() => void renew(), RENEW_MS);
  const callers = names.map((subject, i) => ({
    subject,
    account: `account${i}`,
    get token() {
      return tokens.get(subject) ?? '';
    },
  }));
  return {
    port,
    shop,
    frontend,
    callers,
    decisions: (subject) => decisions.get(subject) ?? 0,
    close: async () => {
      clearInterval(renewing);
      await frontend.stop(0);
      await shop.close();
    },
  };
}
