"""A journal is there line by line, and never written over."""

import threading

import pytest

from sharelens.workloads.journal import Journal, JournalError, read_journal


def test_each_entry_is_in_the_file_at_once_and_shown_to_listeners(tmp_path):
    journal, received_entries = Journal(tmp_path / "j"), []
    journal.listen(received_entries.append)
    journal.write("delivery", offset=3)
    journal.write("ack", at_ms=7)
    actual = list(read_journal(tmp_path / "j"))
    assert [(line, entry["event"]) for line, entry in actual] == [(1, "delivery"), (2, "ack")]
    assert [entry for _, entry in actual] == received_entries
    assert actual[1][1]["at_ms"] == 7
    journal.close()


def test_entries_of_many_threads_stay_whole(tmp_path):
    journal = Journal(tmp_path / "j")

    def write(number):
        for _ in range(200):
            journal.write("problem", error="x" * number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    times = [entry["at_ms"] for _, entry in read_journal(tmp_path / "j")]
    assert len(times) == 1600
    assert times == sorted(times)


def test_a_line_that_was_cut_by_a_kill_is_left_out(tmp_path):
    (tmp_path / "j").write_text('{"event":"begin"}\n{"event":"deli')
    assert [entry["event"] for _, entry in read_journal(tmp_path / "j")] == ["begin"]


@pytest.mark.parametrize("line", ["no json", "[]", '{"at_ms":1}', '{"event":3}', "[" * 100_000])
def test_a_line_that_is_no_entry_is_refused_with_its_number(tmp_path, line):
    (tmp_path / "j").write_text(f'{{"event":"begin"}}\n{line}\n')
    with pytest.raises(JournalError, match="line 2 is no"):
        list(read_journal(tmp_path / "j"))


def test_a_journal_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "j").write_text("evidence")
    with pytest.raises(JournalError, match="is there already"):
        Journal(tmp_path / "j")
    assert (tmp_path / "j").read_text() == "evidence"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(JournalError, match=r"nowhere\.jsonl can't be read"):
        list(read_journal(tmp_path / "nowhere.jsonl"))
