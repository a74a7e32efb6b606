import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { columnId, tableOf } from './choose.js';
import { wordsOf } from './find-key.js';
import type { FlowSource, ViewFlows } from './view-flows.js';

type Look = 'secret' | 'personal' | 'plain';

/** Names of credentials, which are never exposed. */
const SECRET = phrases(`
  password, passwd, pwd, passphrase, pass hash, secret, api key, apikey, private key, access token,
  refresh token, auth token, session token, reset token, bearer, token, salt, otp, totp, mfa, cvv, cvc,
  pin, security answer, credential, credentials`);

const PERSONAL = phrases(`
  email, e mail, mail, phone, telephone, tel, mobile, cell, fax, msisdn, whatsapp, first name, firstname,
  last name, lastname, full name, fullname, surname, forename, fname, lname, given name, family name,
  middle name, maiden name, nickname, username, user name, login, display name, contact name,
  customer name, patient name, employee name, person name, contact, recipient, addressee, cardholder,
  holder name, billing name, ship name, address, addr, street, house number, postcode, post code,
  postal code, zip, zipcode, birth, birthday, birthdate, dob, born, age, gender, sex, ethnicity, race,
  religion, nationality, citizenship, marital, ssn, social security, national id, tax id, tin, nin,
  passport, licence number, license number, driver, licence plate, license plate, vin, iban, bic,
  account number, account no, card number, card no, credit card, creditcard, pan, salary, wage, income,
  diagnosis, disability, blood, medical, health, allergy, weight kg, ip, ip address, ipaddr, mac address,
  device id, user agent, latitude, longitude, lat, lng, photo, avatar, picture, portrait, selfie,
  fingerprint, biometric, signature, twitter, facebook, linkedin, instagram, skype, handle, emergency`);

/** Names of tables about people, where even `name` and `notes` are personal. */
const PEOPLE = phrases(`
  person, persons, people, user, users, customer, customers, client, clients, contact, contacts,
  employee, employees, staff, member, members, patient, patients, student, students, teacher, teachers,
  author, authors, actor, actors, reader, readers, guest, guests, applicant, applicants, candidate,
  candidates, subscriber, subscribers, lead, leads, account, accounts, profile, profiles, passenger,
  passengers, tenant, tenants, doctor, doctors, physician, owner, owners, driver, drivers, agent, agents,
  friend, friends`);
const OF_A_PERSON = phrases('name, title, notes, note, comment, comments, bio, about, description, url');

/** Splits a list at commas. A function declaration, because the lists above call it before this line. */
function phrases(text: string): readonly string[] {
  return text.split(',').map((phrase) => phrase.trim());
}

/** Last words of columns that are about a secret or a person but reveal nothing: `email_verified`. */
const ABOUT = /\b(id|ids|count|total|type|kind|status|verified|confirmed|at|on|enabled|allowed|is|has)$/;
const BIRTH = /\b(birth|born)\b/;

/** Guesses what `column` of `table` contains. Returns `personal` when in doubt, because the user can remove a mask. */
export function lookOf(table: string, column: string): Look {
  const text = wordsOf(column).join(' ');
  const has = (phrases: readonly string[]): boolean => phrases.some((p) => ` ${text} `.includes(` ${p} `));
  const about = ABOUT.test(text) && !BIRTH.test(text) && !has(['tax id', 'national id', 'device id']);
  if (!about && has(SECRET)) return 'secret';
  if (!about && has(PERSONAL)) return 'personal';
  const ofPeople = wordsOf(table).some((word) => PEOPLE.includes(word));
  return ofPeople && OF_A_PERSON.includes(text) ? 'personal' : 'plain';
}

const TENANT = phrases(
  'tenant, organization, organisation, org, workspace, account, company, merchant, client',
);

/** Rank of a name as a tenant column (`tenant_id`, `org`, …), 0 being the most likely; otherwise null. */
export function tenantRank(column: string): number | null {
  const words = wordsOf(column);
  const [first = '', second] = words;
  const shape =
    words.length === 1 || (words.length === 2 && /^(id|key|code|uuid|no|slug)$/.test(second ?? ''));
  const rank = TENANT.indexOf(first);
  // `company` or `client` alone may be a name rather than a key.
  return !shape || rank < 0 || (words.length === 1 && rank > 4) ? null : rank;
}

export type Treatment = 'clear' | 'masked' | 'left out';

/** Treatments by `schema.table.column`; columns not listed are shown in clear. */
export type Treatments = ReadonlyMap<string, Treatment>;

/**
 * Suggests treatments based on names: personal data is masked, credentials are left out. If only one of a foreign key
 * and its target is treated, the other is masked, or it would reveal the same values.
 */
export function suggestTreatments(candidates: readonly AdoptionCandidate[]): Treatments {
  const found = new Map<string, Treatment>();
  for (const candidate of candidates) {
    for (const { name } of candidate.columns) {
      const look = lookOf(candidate.table, name);
      if (look !== 'plain') found.set(columnId(candidate, name), look === 'secret' ? 'left out' : 'masked');
    }
  }
  return spread(found, candidates);
}

/** Propagates treatments to views: each column is treated at least as strictly as its sources. */
export function alongViews(
  treatments: Treatments,
  flows: ViewFlows,
  candidates: readonly AdoptionCandidate[],
): Treatments {
  const out = new Map(treatments);
  const chosen = new Set(candidates.map(tableOf));
  const treated = ({ id, table, column }: FlowSource): Treatment => {
    const own = out.get(id);
    if (own !== undefined || chosen.has(id.slice(0, id.length - column.length - 1))) return own ?? 'clear';
    const look = lookOf(table, column);
    return look === 'plain' ? 'clear' : look === 'secret' ? 'left out' : 'masked';
  };
  // Repeat, because views may read other views.
  for (let changed = true; changed; ) {
    changed = false;
    for (const [id, made] of flows) {
      const before = out.get(id) ?? 'clear';
      const found = made.map(treated);
      const now = found.includes('left out') ? 'left out' : found.includes('masked') ? 'masked' : 'clear';
      if (now === 'clear' || now === before || before === 'left out') continue;
      out.set(id, now);
      changed = true;
    }
  }
  return out;
}

export function spread(treatments: Treatments, candidates: readonly AdoptionCandidate[]): Treatments {
  const out = new Map(treatments);
  const links = candidates.flatMap((candidate) =>
    candidate.foreign_keys.flatMap(({ columns, references }) =>
      columns.map(
        (column, i) =>
          [columnId(candidate, column), columnId(references, references.columns[i] ?? '')] as const,
      ),
    ),
  );
  for (let before = -1; before !== out.size; ) {
    before = out.size;
    for (const [from, to] of links) {
      if (out.has(from) && !out.has(to)) out.set(to, 'masked');
      if (out.has(to) && !out.has(from)) out.set(from, 'masked');
    }
  }
  return out;
}
