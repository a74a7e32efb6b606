/**
 * Text of our own in ten scripts, with what must go between ⟦ and ⟧. Of declared values the dictionary stands beside the
 * texts; what detectors find needs none. Numbers are made up and hold their check digits.
 */
export interface Labelled {
  readonly group: string;
  /** Declared values that are looked for. */
  readonly values: readonly string[];
  readonly texts: readonly string[];
}

export const DECLARED: readonly Labelled[] = [
  {
    group: 'Latin',
    values: [
      "Siobhán O'Brien",
      'Jürgen Müller',
      'Anne-Marie Dubois',
      'Zoë Ångström',
      'Łukasz Wójcik',
      'İpek Yılmaz',
    ],
    texts: [
      'as ⟦Siobhán O’Brien⟧ wrote, and later ⟦SIOBHAN OʼBRIEN⟧',
      '⟦siobhan o`brien⟧ or ⟦Siobhan OBrien⟧ signs',
      'Herr ⟦Jürgen Müller⟧, im Telegramm ⟦JUERGEN MUELLER⟧, auf dem Schild ⟦Jurgen Muller⟧',
      '⟦Ju\u0308rgen Mu\u0308ller⟧ in pieces',
      '⟦Anne‑Marie Dubois⟧, ⟦Anne Marie Dubois⟧, ⟦ANNE–MARIE DUBOIS⟧',
      '⟦Zoe Angstrom⟧ and ⟦Zoë Ångström⟧',
      '⟦Lukasz Wojcik⟧ z Łodzi',
      '⟦ipek yilmaz⟧ ve ⟦İPEK YILMAZ⟧',
      '⟦Jürgen\u00a0Müller⟧ over a hard space, ⟦Jür\u00adgen Müller⟧ over a soft hyphen',
      'Jürgen alone, the Müllers, and Marie Anne Dubois stay',
    ],
  },
  {
    group: 'Greek',
    values: ['Γιώργος Παπαδόπουλος', 'Ελένη Νίκας'],
    texts: [
      'ο ⟦Γιώργος Παπαδόπουλος⟧ και ο ⟦ΓΙΩΡΓΟΣ ΠΑΠΑΔΟΠΟΥΛΟΣ⟧',
      '⟦γιωργος παπαδοπουλος⟧ χωρίς τόνους',
      '⟦ΕΛΈΝΗ ΝΊΚΑΣ⟧, ⟦Ελενη Νικας⟧',
      'ο Γιώργος πήγε',
    ],
  },
  {
    group: 'Cyrillic',
    values: ['Алёна Фёдорова', 'Андрій Шевченко'],
    texts: [
      '⟦Алёна Фёдорова⟧ и ⟦Алена Федорова⟧ и ⟦АЛЁНА ФЁДОРОВА⟧',
      'пан ⟦Андрій Шевченко⟧ та ⟦АНДРІЙ ШЕВЧЕНКО⟧',
      'Алёна и Фёдор пришли',
    ],
  },
  {
    group: 'Arabic',
    values: ['محمد أحمد', 'فاطمة علي', 'رضا کریمی'],
    texts: [
      'قال ⟦محمد أحمد⟧ اليوم',
      '⟦مُحَمَّد أَحْمَد⟧ بالتشكيل',
      '⟦مـحـمـد احمد⟧ بلا همزة',
      '⟦فاطمه علي⟧ و ⟦فاطمة علي⟧',
      '⟦رضا كريمي⟧ و ⟦رضا کریمی⟧',
      'جاء محمد وحده',
    ],
  },
  {
    group: 'Hebrew',
    values: ['שלום כהן', "ז'אן לוי"],
    texts: ['⟦שלום כהן⟧ כאן', '⟦שָׁלוֹם כֹּהֵן⟧ בניקוד', '⟦ז׳אן לוי⟧ וגם ⟦ז’אן לוי⟧', 'שלום לכולם'],
  },
  {
    group: 'Devanagari',
    values: ['राहुल शर्मा', 'फ़ातिमा ख़ान'],
    texts: ['श्री ⟦राहुल शर्मा⟧ आए', '⟦राहुल  शर्मा⟧', '⟦फ़ातिमा ख़ान⟧ जी', 'राहुल गया'],
  },
  {
    group: 'Thai',
    values: ['สมชาย ใจดี', 'กมลวรรณ'],
    texts: ['คุณ⟦สมชาย ใจดี⟧มาแล้ว', 'พบ⟦กมลวรรณ⟧ที่นี่', 'เขาใจดีมาก'],
  },
  {
    group: 'Han',
    values: ['张伟', '欧阳娜娜', '諸葛亮'],
    texts: ['我是⟦张伟⟧。', '见到⟦欧阳娜娜⟧了', '⟦諸葛亮⟧字孔明', '张三和李四'],
  },
  {
    group: 'Kana',
    values: ['山田 太郎', 'ガブリエル', 'さくら花子'],
    texts: ['⟦山田　太郎⟧さん', '⟦ｶﾞﾌﾞﾘｴﾙ⟧と⟦ガブリエル⟧', '⟦さくら花子⟧です', '山田さんと太郎さん'],
  },
  {
    group: 'Hangul',
    values: ['김민수', '이 서연'],
    texts: [
      '저는 ⟦김민수⟧ 입니다',
      '⟦김민수⟧ (분해)'.normalize('NFD').normalize('NFC'),
      '⟦이 서연⟧ 님',
      '김민 씨',
    ],
  },
  {
    group: 'codes, in any grouping and digits',
    values: ['DE89370400440532013000', '4111 1111 1111 1111', '+49 30 901820', '123-45-6789'],
    texts: [
      'IBAN ⟦DE89 3704 0044 0532 0130 00⟧, ⟦de89-3704-0044-0532-0130-00⟧ or ⟦DE89370400440532013000⟧',
      'card ⟦4111-1111-1111-1111⟧, ⟦4111111111111111⟧',
      'card ⟦٤١١١ ١١١١ ١١١١ ١١١١⟧ and ⟦４１１１１１１１１１１１１１１１⟧',
      'call +⟦49 (30) 901820⟧ or +⟦49/30/901820⟧ or +⟦4930901820⟧',
      'ssn ⟦123 45 6789⟧ or ⟦123–45–6789⟧',
      'order 4111 1111 1111 1112 and 49 30 901821',
    ],
  },
];

export const DETECTED: Readonly<Record<string, readonly string[]>> = {
  email: [
    'a <⟦first.last+tag@sub.example.co.uk⟧>, and ⟦j%40x.org⟧',
    '⟦ü＠exämple.org⟧ und ⟦用户@例子.公司⟧',
    'npm i pkg@1.2.3 @scope/name x@y',
  ],
  phone: [
    '⟦+49 30 901820⟧, ⟦(555) 123-4567⟧, ⟦+44 (0)20 7946 0958⟧',
    'zu Hause ⟦030 901820⟧, mobil ⟦0176/12345678⟧, ⟦(030) 901820⟧',
    'home ⟦020 7946 0958⟧ or ⟦07400 123456⟧',
    '⟦(030) 1234567⟧, ⟦(020) 79460958⟧ oder ⟦01711234567⟧',
    'Büro und privat: ⟦030 1234567⟧ ⟦040 7654321⟧, ⟦(030) 1234567⟧ ⟦(040) 7654321⟧',
    'Zimmer 12 ⟦030 901820⟧, ⟦+49 170 1234567⟧ 10115 Berlin',
    'am 24.12.2024 um 12:30, Rechnung 20240102-12345, Version 1.2.3.4567',
    'sizes 100 200 300 and 12345678',
  ],
  secret: [
    'token ⟦ghp_Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1⟧!',
    'API_KEY="⟦abcd1234efgh5678⟧"',
    'commit 9fceb02d0ae598e95dc970b74767f19372d61af8',
    'AbstractSingletonProxyFactoryBean2024Configuration',
  ],
  iban: [
    'auf ⟦DE89 3704 0044 0532 0130 00⟧ überweisen',
    '⟦GB82WEST12345698765432⟧, ⟦FR14 2004 1010 0505 0001 3M02 606⟧ and ⟦NO93 8601 1117 947⟧ in time',
    '⟦nl91abna0417164300⟧',
    'DE89 3704 0044 0532 0130 01 has a wrong digit, AB12 is a part, GB82 WEST is none',
  ],
  card: [
    'paid with ⟦4111 1111 1111 1111⟧ or ⟦5555555555554444⟧',
    'amex ⟦3782 822463 10005⟧, mir ⟦2200 0000 0000 0004⟧',
    'invoice 10234 ⟦4111 1111 1111 1111⟧ 12/26 123',
    '4111 1111 1111 1112 has a wrong digit, 1234 5678 9012 3456 is nobody’s',
    '1700000000000 is a time, 79927398713 too short',
  ],
  national_id: [
    'ssn ⟦123-45-6789⟧, nino ⟦AB 12 34 56 C⟧',
    'NIR ⟦2 55 08 14 168 025 38⟧, DNI ⟦12345678Z⟧, NIE ⟦X1234567L⟧',
    'codice ⟦RSSMRA85T10A562S⟧, PESEL ⟦44051401359⟧, CPF ⟦529.982.247-25⟧',
    'personnummer ⟦811218-9876⟧, henkilötunnus ⟦131052-308T⟧, AHV ⟦756.9217.0769.85⟧',
    '⟦11010519491231002X⟧ and ⟦850101-1234567⟧',
    'Aadhaar ⟦2341 2341 2346⟧',
    '000-45-6789, 12345678A, RSSMRA85T10A562T, 44051401358, 529.982.247-26, 811218-9877, 2341 2341 2347',
  ],
  url_credentials: [
    'postgres://⟦ann:secret⟧@db.example.com/x and https://⟦ghp_token⟧@github.com/x',
    'https://example.com/a@b and mailto:j@x.org and http://x.org:80/',
  ],
};
