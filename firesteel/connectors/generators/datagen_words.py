"""Words that generated records are made of."""

# ruff: noqa: SIM905 - a text of words reads better than a list of strings

from __future__ import annotations

__all__ = ["CITIES", "COUNTRIES", "DOMAINS", "FIRST_NAMES", "LAST_NAMES", "STATES", "WORDS"]

FIRST_NAMES = """
    Ada Amir Ana Bruno Carla Chen Chidi Clara Dario Deepa Elena Emil Farah Felix Grace Hana Hugo Ines Ivan Jamal
    Julia Kai Kofi Lars Leila Lucia Marta Mei Milan Nadia Noor Omar Paula Priya Rosa Samir Sofia Tariq Uma Vera
    Wei Yara Zoe
""".split()
LAST_NAMES = """
    Abebe Ahmed Andersen Bauer Becker Castro Chen Costa Diaz Dubois Fischer Garcia Haddad Ito Ivanova Jansen Kaur
    Khan Kim Kowalski Larsen Lopez Mbeki Meyer Moreau Nakamura Novak Okafor Olsen Park Patel Perez Petrov Rossi
    Sato Silva Singh Svensson Tanaka Weber Wong Yilmaz
""".split()
CITIES = """
    Accra Amsterdam Athens Bangkok Berlin Bogota Boise Cairo Chicago Delhi Dublin Hanoi Helsinki Istanbul Jakarta
    Karachi Kent Kyoto Lagos Lima Lisbon Madrid Manila Mumbai Nairobi Oslo Paris Phoenix Portland Prague Redmond
    Rome Santiago Seattle Seoul Sydney Tokyo Toronto Vienna Warsaw
""".split()
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
COUNTRIES = """
    AU BR CA CN DE EG ES FR GB GH ID IN IT JP KE KR MX NG NL NO PE PL PT SE TH TR US VN ZA
""".split()
DOMAINS = ("example.com", "example.net", "example.org")
WORDS = """
    amber anchor autumn basket bicycle blanket bottle bridge candle carpet castle cedar circle copper cotton
    desert dragon engine feather forest garden glass guitar hammer harbor island jacket ladder lantern lemon
    marble meadow mirror morning needle ocean olive orange paper pebble pencil pepper pillow planet pocket rabbit
    ribbon river rocket saddle silver spring summer table ticket timber tunnel umbrella valley velvet violet wagon
    willow window winter
""".split()
