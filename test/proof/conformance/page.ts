import { casesOf, type Exchanges } from './cases.js';
import { CONTRACT, type RuleId } from './contract.js';
import { LEVELS, levelOf, metLevels, RULES } from './levels.js';
import type { State } from './state.js';
import { NO_NEGATIVE, NOTES, stateOf } from './states.js';
import type { Exchange } from './world.js';

/** `docs/conformance.md`. */
export function conformancePage(exchanges: Exchanges): string {
  const met = new Set<string>(metLevels());
  const levels = LEVELS.map((level) => {
    const rules = RULES.filter((id) => levelOf(id) === level);
    const proved = rules.filter((id) => !['unmet', 'untestable'].includes(stateOf(id).kind));
    const unmet = rules.filter((id) => stateOf(id).kind === 'unmet').map((id) => `\`${id}\``);
    const cells = [level, met.has(level) ? 'yes' : 'no', String(proved.length), unmet.join(', ') || 'none'];
    return `| ${cells.join(' | ')} |`;
  });
  const rules = RULES.map(
    (id) =>
      `| \`${id}\` | ${escaped(CONTRACT[id])} | ${said(id, stateOf(id), exchanges) + escaped(noteOn(id))} |`,
  );
  return `${HEAD}\n${levels.join('\n')}\n\n${RULES_HEAD}\n${rules.join('\n')}\n`;
}

/** Requests of one check that the page shows. */
const SHOWN = 3;
const LONGEST = 220;

function said(id: RuleId, state: State, exchanges: Exchanges): string {
  switch (state.kind) {
    case 'checked':
      return `proved (${counts(id, exchanges)}): ${asked(exchanges.get(id) ?? [])}`;
    case 'same':
      return `proved as \`${state.as}\` (${counts(id, exchanges)}): ${asked(exchanges.get(state.as) ?? [])}`;
    case 'tested':
      return `proved through ${state.through} by \`${state.file}\` (${counts(id, exchanges)}): ${[...state.positive, ...state.negative].map((title) => `“${escaped(title)}”`).join(', ')}`;
    case 'untestable':
      return `not testable: ${escaped(state.why)}`;
    case 'unmet':
      return `**not met**: ${escaped(state.why)}`;
  }
}

/** `3 positive, 1 negative`, or why there is no negative case. */
function counts(id: RuleId, exchanges: Exchanges): string {
  const { positive, negative } = casesOf(id, exchanges) ?? { positive: 0, negative: 0 };
  const reason = NO_NEGATIVE[id];
  return `${positive} positive, ${reason === undefined ? `${negative} negative` : `no negative: ${escaped(reason)}`}`;
}

/** Each request with all that it was answered, since one text may be sent with several tokens. */
function asked(exchanges: readonly Exchange[]): string {
  const answers = new Map<string, Set<string>>();
  for (const { request, answer } of exchanges)
    answers.set(request, (answers.get(request) ?? new Set()).add(answer));
  const lines = [...answers].map(([request, of]) => `${code(request)} → ${[...of].sort().join(', ')}`);
  const more = lines.length > SHOWN ? `; and ${lines.length - SHOWN} more` : '';
  return lines.slice(0, SHOWN).join('; ') + more;
}

/** As code that breaks no table. */
function code(text: string): string {
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return `\`\`${cut.replaceAll('`', "'").replaceAll('|', '\\|')}\`\``;
}

function noteOn(id: RuleId): string {
  const note = NOTES[id];
  return note === undefined ? '' : `; ${note}`;
}

/** Text for the cell of a table. */
function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

const HEAD = `# Conformance

What the interface contract says, sentence by sentence and row by row, and what is known of each. The page is written by \`test/proof/conformance\`, whose checks ask a running service: REST, and where the line says so MCP (\`MCP …\`) and the Postgres wire (\`wire …\`). Of each check it shows the first requests, with who asks and all that the service answered. Where one request has several answers it was sent more often than the limit allows. What each answer held is in the check of the same name.

Behind \`proved\` are the numbers of cases. Positive: what the rule promises is answered, as it says. Negative: what the rule forbids is refused, with its status and code, or an answer comes without it. A proved rule has at least one of each; where it can have no negative case the page says why, and a test fails where either is missing.

A level is a group of rules. It is declared, and \`GET /osl/conformance\` lists it, only where every rule of it that can be tested is proved.

| level | declared | rules proved | rules not met |
|---|---|---|---|`;

const RULES_HEAD = `## Rules

| id | rule | state |
|---|---|---|`;
