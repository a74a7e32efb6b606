import type { AnalysedPolicy, CheckedDatabase } from '../checked-database.js';
import { listed } from '../checked-database.js';
import type { SettingRead } from '../expression.js';
import type { Rule } from '../finding.js';
import { settingsOfFunction } from '../function-body.js';
import { policyObject } from '../identity.js';

/** Conditions that depend on settings of the session or claims of a token. */
export const SETTINGS: readonly Rule[] = [
  {
    code: 'RLS032',
    severity: 'note',
    title: 'current_setting without missing_ok',
    consequence: 'Each query on the table fails with 42704 in a session that has not set the setting.',
    mend: "write current_setting('…', true), which is NULL if the setting is not set, and then shows no row",
    check: (db) =>
      withSettings(
        db,
        ({ name, missingOk }) => name.includes('.') && !missingOk,
        (names) => `setting ${names}`,
      ),
  },
  {
    code: 'RLS033',
    severity: 'note',
    title: 'setting cast to another type without NULLIF',
    consequence:
      "The setting is '' after a transaction that used SET LOCAL, and the cast of '' fails with 22P02.",
    mend: "write NULLIF(current_setting('…', true), '')::type",
    check: (db) =>
      withSettings(
        db,
        ({ name, cast }) => name.includes('.') && cast !== null,
        (names) => `setting ${names}`,
      ),
  },
  {
    code: 'RLS034',
    severity: 'note',
    title: 'condition that depends on a setting of the session',
    consequence:
      'Whoever can run SQL of their own as the role sets it to any value, and sees the rows of anybody.',
    mend: 'let only trusted code run SQL as the role, or derive the rows from current_user or a signed value',
    check: (db) =>
      db.policies.flatMap((analysed) => {
        const names = new Set(settingNames(db, analysed).filter((name) => name.includes('.')));
        if (names.size === 0) return [];
        const detail = `setting ${listed([...names])}`;
        return [{ object: policyObject(analysed.table, analysed.policy), detail, sql: [] }];
      }),
  },
  {
    code: 'RLS038',
    severity: 'error',
    title: 'condition on user_metadata of a token',
    consequence:
      'Users of Supabase Auth can change their own user_metadata, and with it which rows they see.',
    mend: 'use app_metadata, which only the server can change',
    check: (db) =>
      db.policies
        .filter(({ parsed }) =>
          parsed.some(
            ({ literals, calls }) =>
              literals.some(isUserMetadata) ||
              calls.flatMap(db.functionsNamed).some(({ body }) => isUserMetadata(body)),
          ),
        )
        .map(({ table, policy }) => ({ object: policyObject(table, policy), detail: null, sql: [] })),
  },
];

function isUserMetadata(text: string): boolean {
  return /\b(user_metadata|raw_user_meta_data)\b/.test(text);
}

function withSettings(
  db: CheckedDatabase,
  matches: (read: SettingRead) => boolean,
  detailOf: (names: string) => string,
) {
  return db.policies.flatMap(({ table, policy, parsed }) => {
    const names = new Set(parsed.flatMap(({ settings }) => settings.filter(matches)).map(({ name }) => name));
    if (names.size === 0) return [];
    return [{ object: policyObject(table, policy), detail: detailOf(listed([...names])), sql: [] }];
  });
}

/** Settings that the condition, or a function that it calls, reads. */
function settingNames(db: CheckedDatabase, { parsed }: AnalysedPolicy): readonly string[] {
  return parsed.flatMap(({ settings, calls }) => [
    ...settings.map(({ name }) => name),
    ...calls.flatMap(db.functionsNamed).flatMap(settingsOfFunction),
  ]);
}
