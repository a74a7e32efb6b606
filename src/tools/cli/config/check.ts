import { messageOf } from '../../../base/thrown.js';
import type { Settings } from '../../../service/settings.js';
import { settingsFrom } from '../../../service/settings.js';
import { type Finding, failed, ok, warn } from '../doctor/finding.js';
import { doctorFindings, reportFindings } from '../doctor/run.js';
import { EXIT } from '../exit.js';
import { type ServerFlags, settingsBesideServer } from '../flags.js';
import { fetchHttp } from '../http.js';
import { printJson } from '../output.js';

export interface CheckFlags extends ServerFlags {
  readonly json?: true;
}

/** Looks at every setting, and at all that a start looks at, and serves nothing. Exit status 1 where something fails. */
export async function runConfigCheck(flags: CheckFlags): Promise<void> {
  const findings: Finding[] = [];
  try {
    const settings = settingsBesideServer(flags);
    findings.push(ok('settings', 'every variable has a value that can be'), ...unknownVariables());
    findings.push(...(await doctorFindings(settings)), ...(await urlFindings(settings)));
  } catch (error) {
    findings.push(failed('settings', error), ...unknownVariables());
  }
  const failures = findings.filter(({ state }) => state === 'fail').length;
  if (flags.json) printJson({ ok: failures === 0, findings });
  else reportFindings(findings);
  if (failures > 0) process.exitCode = EXIT.failed;
}

/** Read elsewhere than by `settingsFrom`. */
const OTHERS =
  /^OSL_(TOKEN|SUBJECT|SERVER|ADMIN_URL|DEBUG|LOG_LEVEL|LOG_LEVEL_FILE|LOG_FORMAT|TEST_.*|POSTGRES_URL.*|LINEAGE_.*|CONTROL_.*|.*_FILE|.*_KEY|.*_SECRET)$/;

/** Variables that nothing reads: most of them are another's name with a slip of the hand. */
function unknownVariables(): readonly Finding[] {
  const read = new Set<string>();
  const noting = new Proxy(process.env, {
    get(target, name) {
      if (typeof name === 'string') read.add(name);
      return Reflect.get(target, name);
    },
  });
  try {
    settingsFrom(noting, process.cwd());
  } catch {
    return []; // a fault ends the reading: what is read after it is not known
  }
  return Object.keys(process.env)
    .filter((name) => name.startsWith('OSL_') && !read.has(name) && !OTHERS.test(name))
    .map((name) => warn('settings', `nothing reads ${name}`, 'docs/configuration.md has every variable'));
}

/** Servers that are asked while it serves, if they answer at all: no key is sent. */
async function urlFindings({ content, otlp }: Settings): Promise<readonly Finding[]> {
  const urls = [
    ['embeddings', content.embeddings?.url],
    ['chat', content.chat?.url],
    ['collector', otlp?.endpoint],
  ] as const;
  return Promise.all(urls.flatMap(([about, url]) => (url === undefined ? [] : [urlFinding(about, url)])));
}

async function urlFinding(about: string, url: string): Promise<Finding> {
  const { origin } = new URL(url);
  try {
    await fetchHttp(url, { headers: {}, signal: AbortSignal.timeout(5_000) });
    return ok(about, `${origin} answers`);
  } catch (error) {
    return warn(about, `${origin} does not answer: ${messageOf(error)}`);
  }
}
