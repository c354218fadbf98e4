//! The bytes of series and frames; the definitions are `proofcast/groups/series.py` and `frame.py`.

pub(super) const VERSION: u8 = 1;
const MESSAGES_MAX: usize = 1_024;
const RECIPIENTS_MAX: usize = 1_024;
const COMMON_MAX: usize = 1 << 20;
const CIPHERTEXT_MAX: usize = 1_024;
const FORM_MAX: u8 = 2;
pub(super) const SALT: usize = 16;
pub(super) const ID: usize = 32;
pub(super) const INDEX_BITS: u64 = 20;

pub(super) const SENT: u8 = 0;
pub(super) const RECEIVED: u8 = 1;
pub(super) const SERIES_ENTRY: u8 = 1;
pub(super) const DEMAND_ENTRY: u8 = 5;

pub(super) type Id = [u8; ID];
pub(super) type LeafId = (u8, Id);

pub(super) struct Envelope<'a> {
    pub(super) recipient: &'a Id,
    /// form | length | ciphertext
    pub(super) sealed: &'a [u8],
}

pub(super) struct Message<'a> {
    /// length | common ciphertext | number of recipients
    pub(super) opening: &'a [u8],
    pub(super) common: &'a [u8],
    pub(super) envelopes: Vec<Envelope<'a>>,
}

pub(super) struct Series<'a> {
    pub(super) sender: &'a Id,
    pub(super) counter: &'a [u8],
    pub(super) messages: Vec<Message<'a>>,
}

pub(super) struct Reader<'a> {
    pub(super) data: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let piece = self.data.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(piece)
    }

    pub(super) fn id(&mut self) -> Option<&'a Id> {
        self.take(ID)?.try_into().ok()
    }

    pub(super) fn number(&mut self, size: usize) -> Option<usize> {
        Some(self.take(size)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    fn count(&mut self, size: usize, limit: usize) -> Option<usize> {
        self.number(size).filter(|&number| number <= limit)
    }
}

pub(super) fn parse_series(data: &[u8]) -> Option<Series<'_>> {
    let mut reader = Reader { data, at: 0 };
    if reader.take(1)? != [VERSION] {
        return None;
    }
    let (sender, counter) = (reader.id()?, reader.take(8)?);
    let count = reader.count(2, MESSAGES_MAX)?;
    let messages = (0..count).map(|_| parse_message(&mut reader, sender)).collect::<Option<Vec<_>>>()?;
    (reader.at == data.len() && count > 0).then_some(Series { sender, counter, messages })
}

fn parse_message<'a>(reader: &mut Reader<'a>, sender: &Id) -> Option<Message<'a>> {
    let begin = reader.at;
    let length = reader.count(4, COMMON_MAX)?;
    let common = reader.take(length).filter(|common| common.len() > SALT)?;
    let size = reader.count(2, RECIPIENTS_MAX)?;
    let opening = &reader.data[begin..reader.at];
    let envelopes = (0..size).map(|_| parse_envelope(reader)).collect::<Option<Vec<_>>>()?;
    let is_sorted = envelopes.windows(2).all(|pair| pair[0].recipient < pair[1].recipient);
    let has_sender = envelopes.iter().any(|envelope| envelope.recipient == sender);
    (is_sorted && has_sender).then_some(Message { opening, common, envelopes })
}

fn parse_envelope<'a>(reader: &mut Reader<'a>) -> Option<Envelope<'a>> {
    let recipient = reader.id()?;
    let begin = reader.at;
    let form = reader.take(1)?[0];
    let length = reader.count(2, CIPHERTEXT_MAX)?;
    reader.take(length)?;
    (form <= FORM_MAX).then_some(Envelope { recipient, sealed: &reader.data[begin..reader.at] })
}

/// The kind, client and body of each entry of a frame.
pub(super) fn parse_entries(body: &[u8]) -> impl Iterator<Item = (u8, &Id, &[u8])> {
    let mut reader = Reader { data: body, at: 0 };
    std::iter::from_fn(move || {
        let kind = reader.take(1)?[0];
        let client = reader.id()?;
        let length = reader.number(4)?;
        Some((kind, client, reader.take(length)?))
    })
}
