import { wordsOf } from './words.js';

/** What a column looks to hold, by its name alone. No row is read for it. */
export type Look = 'secret' | 'personal' | 'plain';

/** Credentials: nobody asks questions about them. */
const SECRET = phrases(`
  password, passwd, pwd, passphrase, pass hash, secret, api key, apikey, private key, access token,
  refresh token, auth token, session token, reset token, bearer, token, salt, otp, totp, mfa, cvv, cvc,
  pin, security answer, credential, credentials`);

/** Each is a run of words within a name. */
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

/** Tables that are about people: there `name`, `notes` and the like say something of one. */
const PEOPLE = phrases(`
  person, persons, people, user, users, customer, customers, client, clients, contact, contacts,
  employee, employees, staff, member, members, patient, patients, student, students, teacher, teachers,
  author, authors, actor, actors, reader, readers, guest, guests, applicant, applicants, candidate,
  candidates, subscriber, subscribers, lead, leads, account, accounts, profile, profiles, passenger,
  passengers, tenant, tenants, doctor, doctors, physician, owner, owners, driver, drivers, agent, agents,
  friend, friends`);
const OF_A_PERSON = phrases('name, title, notes, note, comment, comments, bio, about, description, url');

/** A list between commas. Hoisted: the lists above are made of it. */
function phrases(text: string): readonly string[] {
  return text.split(',').map((phrase) => phrase.trim());
}

/** Words after which the column says something about a secret or a person, and is none: `email_verified`. */
const ABOUT = /\b(id|ids|count|total|type|kind|status|verified|confirmed|at|on|enabled|allowed|is|has)$/;
const BIRTH = /\b(birth|born)\b/;

/** What `column` of `table` looks to hold. Errs towards `personal`: whoever sets up may take a mask away. */
export function lookOf(table: string, column: string): Look {
  const text = wordsOf(column).join(' ');
  const has = (phrases: readonly string[]): boolean => phrases.some((p) => ` ${text} `.includes(` ${p} `));
  const about = ABOUT.test(text) && !BIRTH.test(text) && !has(['tax id', 'national id', 'device id']);
  if (!about && has(SECRET)) return 'secret';
  if (!about && has(PERSONAL)) return 'personal';
  const ofPeople = wordsOf(table).some((word) => PEOPLE.includes(word));
  return ofPeople && OF_A_PERSON.includes(text) ? 'personal' : 'plain';
}

/** Columns that often say whose a row is, best first. */
const TENANT = phrases(
  'tenant, organization, organisation, org, workspace, account, company, merchant, client',
);

/** `tenant_id`, `org`, `workspaceId`, …: the rank of a name as that of a tenant's column; null where it is none. */
export function tenantRank(column: string): number | null {
  const words = wordsOf(column);
  const [first = '', second] = words;
  const shape =
    words.length === 1 || (words.length === 2 && /^(id|key|code|uuid|no|slug)$/.test(second ?? ''));
  const rank = TENANT.indexOf(first);
  // `company` or `client` alone is as often a name as a key.
  return !shape || rank < 0 || (words.length === 1 && rank > 4) ? null : rank;
}
